"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  root.classList.add("scripted");

  // Light and dark: what the system says, until the button says otherwise.
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const nameButton = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameButton();
  });
  system.addEventListener("change", nameButton);
  nameButton();

  // What scrolls must be reachable by keyboard.
  const scrollers = () => {
    for (const box of all(".scroll")) {
      const wide = box.scrollWidth > box.clientWidth + 1;
      box.toggleAttribute("data-wide", wide);
      if (wide) box.tabIndex = 0; else box.removeAttribute("tabindex");
    }
  };
  addEventListener("resize", scrollers);
  scrollers();

  // Tables sort by a click on a heading: best first, then worst first, then as they were.
  const byName = new Intl.Collator(undefined, { numeric: true });
  for (const table of all("table.sortable")) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    const headings = all("thead th", table);
    headings.forEach((heading, column) => {
      if (heading.dataset.kind === "none") return;
      const sorter = document.createElement("button");
      sorter.type = "button";
      sorter.append(...heading.childNodes);
      heading.append(sorter);
      heading.setAttribute("aria-sort", "none");
      const isText = heading.dataset.kind === "text";
      const smallest = isText || (heading.dataset.best || table.dataset.best) === "min";
      const cycle = [smallest ? "ascending" : "descending", smallest ? "descending" : "ascending", "none"];
      sorter.addEventListener("click", () => {
        const now = cycle[(cycle.indexOf(heading.getAttribute("aria-sort")) + 1) % 3];
        for (const other of headings) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
        heading.setAttribute("aria-sort", now);
        const sign = now === "ascending" ? 1 : -1;
        const rows = [...original];
        if (now !== "none") {
          const key = (row) => (isText ? row.cells[column].textContent : row.cells[column].dataset.v);
          rows.sort((a, b) => {
            const x = key(a), y = key(b);
            if (isText) return sign * byName.compare(x, y);
            if (!x || !y) return (x ? 0 : 1) - (y ? 0 : 1);  // what is missing comes last
            return sign * (Number(x) - Number(y));
          });
        }
        body.append(...rows);
      });
    });
  }

  // Everything is open on paper.
  const folds = all("details");
  for (const fold of folds) fold.addEventListener("toggle", scrollers);
  const closed = new Set();
  addEventListener("beforeprint", () => {
    for (const fold of folds) {
      if (!fold.open) closed.add(fold);
      fold.open = true;
    }
  });
  addEventListener("afterprint", () => {
    for (const fold of closed) fold.open = false;
    closed.clear();
  });
})();
