
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  // Text of the data becomes text of the page, never markup.
  const el = (tag, attributes = {}, ...children) => {
    const svg = /^(svg|g|line|polyline|circle|rect|text|title)$/.test(tag);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const percent = (share, digits = 0) => (Number.isFinite(share) ? `${(100 * share).toFixed(digits)} %` : "–");
  const amount = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 });
  const shown = (value) => (data.grid ? percent(value, value > 0 && (value < 0.03 || value > 0.97) ? 1 : 0) : String(value));
  const rowName = (row) => data.names[row] ?? String(row);

  const thresholds = (label) => {
    const grid = [...(data.grid ?? label.grid)];
    grid.splice(label.at, 0, label.own);
    return grid;
  };
  const measures = (label, k) => {
    const tp = label.tp[k], called = label.called[k];
    return {
      tp, fp: called - tp, fn: label.support - tp,
      precision: called ? tp / called : NaN, recall: label.support ? tp / label.support : NaN,
      f1: label.support + called ? (2 * tp) / (label.support + called) : NaN,
    };
  };

  // Pictures: a frame from 0 to 1, with lines in it.
  const W = 260, H = 190, L = 34, T = 8;
  const px = (x) => L + x * (W - L - 8), py = (y) => T + (1 - y) * (H - T - 34);
  const frame = (across, up, ends) => {
    const svg = el("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${up} by ${across}` });
    for (const y of [0, 0.5, 1]) {
      svg.append(el("line", { class: "grid", x1: px(0), x2: px(1), y1: py(y), y2: py(y) }));
      svg.append(el("text", { x: L - 4, y: py(y) + 3, "text-anchor": "end" }, percent(y)));
    }
    svg.append(el("line", { class: "axis", x1: px(0), x2: px(1), y1: py(0), y2: py(0) }));
    ends.forEach((text, i) => svg.append(el("text", { x: px(i), y: H - 20, "text-anchor": i ? "end" : "start" }, text)));
    svg.append(el("text", { x: px(0.5), y: H - 6, "text-anchor": "middle" }, across));
    return svg;
  };
  const line = (points, name) => el("polyline", { class: name, points: points.map(([x, y]) => `${px(x)},${py(y)}`).join(" ") });

  const selector = (label, name) => {
    const select = el("select", { "aria-label": "Label" });
    data.labels.forEach((one, j) => select.append(el("option", { value: j }, one.name)));
    select.value = data.labels.indexOf(label);
    select.addEventListener("change", () => choose(Number(select.value), name));
    return select;
  };

  const showLabel = (j) => {
    const label = data.labels[j], grid = thresholds(label), last = grid.length - 1;
    const low = Math.min(...grid), high = Math.max(...grid), x = (value) => (high > low ? (value - low) / (high - low) : 0);
    const slider = el("input", { type: "range", min: 0, max: last, step: 1, value: label.at, "aria-label": "Threshold" });
    const output = el("output"), tiles = el("dl", { class: "tiles" }), own = el("button", { type: "button" }, "Back to the model’s threshold");
    const costs = ["false positive", "false negative"].map((name, i) => el("input", {
      type: "number", min: 0, step: "any", "aria-label": `Cost of a ${name}`, value: label.cost ? label.cost[i] : "",
    }));
    const cheapest = el("button", { type: "button" }, "Cheapest threshold");
    const curves = frame(data.grid ? "threshold (probability)" : "threshold (score)", "precision and recall", data.grid ? ["0 %", "100 %"] : [amount(low), amount(high)]);
    const steps = grid.map((value, k) => [x(value), measures(label, k)]);
    curves.append(line(steps.filter(([, m]) => Number.isFinite(m.precision)).map(([v, m]) => [v, m.precision]), "first"));
    curves.append(line(steps.filter(([, m]) => Number.isFinite(m.recall)).map(([v, m]) => [v, m.recall]), "second"));
    const mark = el("line", { class: "mark", y1: py(0), y2: py(1) });
    curves.append(mark);
    const price = (k) => {
      const m = measures(label, k), [fp, fn] = costs.map((input) => Number(input.value || NaN));
      return m.fp * fp + m.fn * fn;
    };
    const update = () => {
      const k = Number(slider.value), m = measures(label, k), total = price(k);
      output.textContent = shown(grid[k]);
      mark.setAttribute("x1", px(x(grid[k])));
      mark.setAttribute("x2", px(x(grid[k])));
      const tile = (name, text) => el("div", {}, el("dt", {}, name), el("dd", {}, text));
      tiles.replaceChildren(
        tile("precision", percent(m.precision)), tile("recall", percent(m.recall)),
        tile("F1", Number.isFinite(m.f1) ? m.f1.toFixed(2) : "–"),
        tile("false positives", amount(m.fp)), tile("false negatives", amount(m.fn)),
        ...(Number.isFinite(total) ? [tile("cost of errors", amount(total))] : []));
      own.hidden = k === label.at;
      cheapest.hidden = !Number.isFinite(total);
      slider.setAttribute("aria-valuetext", shown(grid[k]));
    };
    slider.addEventListener("input", update);
    own.addEventListener("click", () => { slider.value = label.at; update(); });
    cheapest.addEventListener("click", () => {
      const all = grid.map((_, k) => price(k));
      slider.value = all.indexOf(Math.min(...all));
      update();
    });
    for (const input of costs) input.addEventListener("input", update);
    const plots = el("div", { class: "plots" }, el("figure", {}, curves, el("figcaption", {},
      el("strong", { class: "key1" }, "Precision"), " and ", el("strong", { class: "key2" }, "recall (dashed)"), " at every threshold")));
    if (label.bins) {
      const curve = frame("predicted probability", "observed frequency", ["0 %", "100 %"]);
      curve.append(line([[0, 0], [1, 1]], "axis"), line(label.bins.map(([, p, o]) => [p, o]), "first"));
      const most = Math.max(...label.bins.map(([n]) => n));
      for (const [n, p, o] of label.bins) {
        curve.append(el("circle", { class: "dot", cx: px(p), cy: py(o), r: 2 + 4 * Math.sqrt(n / most) },
          el("title", {}, `${amount(n)} rows: ${percent(p)} predicted, ${percent(o)} observed`)));
      }
      plots.append(el("figure", {}, curve, el("figcaption", {}, "Calibration: how often the label is there, by what was predicted; on the diagonal, probabilities are right. Larger dots are more rows.")));
    }
    at("label").replaceChildren(
      el("div", { class: "head" }, el("h3", {}, label.name), selector(label, "label")),
      el("p", {}, `${amount(label.support)} of ${amount(label.n)} rows have this label.`),
      el("div", { class: "slide" }, el("span", {}, "Threshold"), slider, output), tiles,
      el("div", { class: "costs" }, own, el("label", {}, "A false positive costs ", costs[0]), el("label", {}, "a false negative ", costs[1]), cheapest),
      plots);
    update();
  };

  const why = (parts) => {
    const most = Math.max(...parts.map(([, , value]) => Math.abs(value))) || 1;
    const box = el("div", { class: "why" });
    for (const [column, value, size] of parts) {
      const bar = el("i", { class: size < 0 ? "down" : "up" });
      bar.style.setProperty("--w", Math.abs(size) / most);
      box.append(el("span", { title: value }, data.columns.length < data.n_columns ? `${column} = ${value}` : column), bar, el("b", {}, `${size < 0 ? "−" : "+"}${Math.abs(size).toFixed(2)}`));
    }
    return box;
  };
  const cells = (row) => {
    const found = data.rows[row]?.cells, list = el("dl", { class: "cells" });
    (found ?? []).forEach((text, i) => {
      if (text !== "missing") list.append(el("div", { class: text.length > 30 ? "long" : "short" }, el("dt", {}, data.columns[i]), el("dd", {}, text)));
    });
    return list;
  };
  const errorCard = (j, [row, value]) => {
    const parts = data.rows[row]?.why?.[j];
    const card = el("div", { class: "error" },
      el("p", {}, el("span", { class: "chance" }, shown(value)), el("strong", {}, `Row ${rowName(row)}`)), cells(row));
    if (parts) card.append(el("p", { class: "soft" }, `Why: what columns add to the score, compared with other rows${data.held_out ? "; by the model that was fitted on all rows" : ""}`), why(parts));
    return card;
  };
  const showErrors = (j) => {
    const label = data.labels[j], m = measures(label, label.at);
    const side = (title, text, list, total) => el("div", {}, el("h3", {}, title),
      el("p", { class: "soft" }, text + (total > list.length ? ` The worst ${list.length} of ${amount(total)}.` : "")),
      ...(list.length ? list.map((one) => errorCard(j, one)) : [el("p", {}, "None.")]));
    at("wrong").replaceChildren(
      el("p", { class: "switch" }, el("label", {}, "Label ", selector(label, "errors"))),
      el("div", { class: "sides" },
        side("False positives", "Predicted, but not given; the surest first.", label.fp, m.fp),
        side("False negatives", "Given, but not predicted; the least expected first.", label.fn, m.fn)));
  };

  const links = [...document.querySelectorAll("a[data-label]")];
  const choose = (j, name) => {
    showLabel(j);
    showErrors(j);
    for (const link of links) link.closest("tr").classList.toggle("chosen", Number(link.dataset.label) === j);
    if (name) at(name === "errors" ? "wrong" : "label").querySelector("select").focus({ preventScroll: true });
  };
  for (const link of links) {
    link.closest("tr").addEventListener("click", (event) => {
      choose(Number(link.dataset.label));
      if (event.target !== link) at("label").scrollIntoView({ block: "nearest", behavior: "smooth" });
    });
  }
  const worst = data.labels.map((label) => measures(label, label.at)).map((m) => m.fp + m.fn);
  choose(worst.indexOf(Math.max(...worst)));

  // Co-occurrence: squares, and the pairs that differ most.
  const { labels, given, predicted } = data.pairs, names = labels.map((j) => data.labels[j].name);
  const pairs = [];
  for (let a = 0; a < labels.length; a += 1) for (let b = 0; b < a; b += 1) pairs.push([a, b, given[a][b], predicted[a][b]]);
  pairs.sort((p, q) => Math.abs(q[3] - q[2]) - Math.abs(p[3] - p[2]));
  if (pairs.length) {
    const body = el("tbody");
    for (const [a, b, both, called] of pairs.slice(0, 8)) {
      const difference = called - both;
      body.append(el("tr", {}, el("th", { scope: "row" }, el("span", { class: "name" }, `${names[b]} + ${names[a]}`)), el("td", {}, amount(both)), el("td", {}, amount(called)),
        el("td", {}, `${difference > 0 ? "+" : ""}${amount(difference)}`)));
    }
    const head = el("thead", {}, el("tr", {}, ...["labels", "rows given", "rows predicted", "difference"].map((text) => el("th", { scope: "col" }, text))));
    const square = (counts, title) => {
      const n = labels.length, side = 300, room = n > 16 ? 0 : 84, step = (side - room) / n;
      const most = Math.max(1, ...counts.flatMap((row, a) => row.filter((_, b) => a !== b)));
      const svg = el("svg", { viewBox: `0 0 ${side} ${side - room + 4}`, role: "img", "aria-label": title });
      counts.forEach((row, a) => {
        if (room) svg.append(el("text", { x: room - 5, y: (a + 0.65) * step, "text-anchor": "end" }, names[a].length > 15 ? `${names[a].slice(0, 14)}…` : names[a]));
        row.forEach((count, b) => {
          svg.append(el("rect", { class: a === b ? "grid" : "cell", x: room + b * step, y: a * step, width: step - 1, height: step - 1, rx: 2, opacity: a === b ? 0.5 : 0.06 + 0.94 * Math.sqrt(count / most) },
            el("title", {}, a === b ? `${names[a]}: ${amount(count)} rows` : `${names[a]} + ${names[b]}: ${amount(count)} rows`)));
        });
      });
      return el("figure", {}, svg, el("figcaption", {}, title));
    };
    at("pairs").append(el("div", { class: "scroll" }, el("table", {}, head, body)),
      el("div", { class: "squares" }, square(given, "Given together"), square(predicted, "Predicted together")));
  } else at("pairs").append(el("p", {}, "There is only one label."));

  for (const cell of document.querySelectorAll("td[data-row]")) {
    const found = data.rows[cell.dataset.row]?.cells ?? [];
    const parts = found.map((text, i) => [data.columns[i], text]).filter(([, text]) => text !== "missing");
    parts.sort((a, b) => b[1].length - a[1].length);
    const text = parts.slice(0, 4).map(([column, value]) => `${column}: ${value}`).join(" · ");
    cell.textContent = text.length > 220 ? `${text.slice(0, 219)}…` : text;
  }
  at("export")?.addEventListener("click", () => {
    const link = el("a", { href: URL.createObjectURL(new Blob([data.csv], { type: "text/csv" })), download: "suspect_labels.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  dispatchEvent(new Event("resize"));
})();
