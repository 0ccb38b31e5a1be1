"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // One metric and one way of choosing settings at a time, the same in all sections.
  const chosen = {};
  const show = () => {
    for (const section of all("section")) {
      const panels = all(".panel", section);
      for (const panel of panels) {
        panel.hidden = panel.dataset.metric !== chosen.metric
          || !panel.dataset.selection.split(" ").includes(chosen.selection);
      }
      for (const none of all(".none", section)) none.hidden = panels.some((panel) => !panel.hidden);
    }
    dispatchEvent(new Event("resize"));
  };
  const selects = all("select[data-switch]");
  for (const select of selects) {
    select.addEventListener("change", () => {
      const name = select.dataset.switch;
      chosen[name] = select.value;
      for (const other of selects) if (other.dataset.switch === name) other.value = select.value;
      const before = select.getBoundingClientRect().top;
      show();
      // What is above may have become taller or shorter: keep the switch where it was.
      scrollBy({ top: select.getBoundingClientRect().top - before, behavior: "instant" });
    });
  }
  const first = document.querySelector('select[data-switch="metric"]');
  chosen.metric = first ? first.value : "";
  chosen.selection = "own";
  for (const select of selects) select.value = chosen[select.dataset.switch];
  show();


  const unfold = document.getElementById("unfold");
  if (unfold) {
    unfold.addEventListener("click", () => {
      const datasets = all("details.dataset");
      const open = !datasets.every((fold) => fold.open);
      for (const fold of datasets) fold.open = open;
      unfold.textContent = open ? "Close all" : "Open all";
      dispatchEvent(new Event("resize"));
    });
  }
})();
