"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // One metric at a time, the same in all sections.
  const selects = all("select[data-switch]");
  const show = (metric) => {
    for (const select of selects) select.value = metric;
    for (const section of all("section")) {
      const panels = all(".panel", section);
      for (const panel of panels) panel.hidden = panel.dataset.metric !== metric;
      for (const none of all(".none", section)) none.hidden = panels.some((panel) => !panel.hidden);
    }
    dispatchEvent(new Event("resize"));
  };
  for (const select of selects) {
    select.addEventListener("change", () => {
      const before = select.getBoundingClientRect().top;
      show(select.value);
      // What is above may have become taller or shorter: keep the switch where it was.
      scrollBy({ top: select.getBoundingClientRect().top - before, behavior: "instant" });
    });
  }
  if (selects.length) show(selects[0].value);

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
