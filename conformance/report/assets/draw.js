"use strict";
/* Small drawings: a status as letter and colour, counts as a bar, nights as a strip, a tensor in its storage. */
report.draw = (function () {
  const { h, svg } = report;
  const MOST = 480; // elements of a storage that are drawn

  /* A square with the status' letter; a pass is a dot, so that the others stand out. */
  function glyph(status, title) {
    if (status === report.data.ABSENT) return h("span", { class: "glyph absent", title: title || "not in this lane" });
    const s = report.site.statuses[status];
    return h("span", { class: `glyph ${s.name}`, title: title || `${s.name}: ${s.meaning}` }, s.name === "pass" ? "·" : s.letter);
  }

  function bar(byStatus) {
    const total = Object.values(byStatus).reduce((a, b) => a + b, 0) || 1;
    const parts = report.site.statuses.filter((s) => byStatus[s.name]);
    const said = parts.map((s) => `${report.number(byStatus[s.name])} ${s.name}`).join(", ");
    const made = svg("svg", { class: "bar", viewBox: "0 0 1000 10", preserveAspectRatio: "none", role: "img", "aria-label": said });
    let at = 0;
    parts.forEach((s, i) => {
      const wide = Math.max((1000 * byStatus[s.name]) / total, s.failure ? 6 : 0);
      const width = i === parts.length - 1 ? Math.max(0, 1000 - at) : Math.min(wide, 1000 - at);
      made.append(svg("rect", { class: s.name, x: at, y: 0, width, height: 10 }));
      at += width;
    });
    made.append(svg("title", {}, said));
    return made;
  }

  function share(part, whole) {
    const made = svg("svg", { class: "bar share", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
    made.append(svg("rect", { class: "rest", width: 100, height: 10 }));
    made.append(svg("rect", { class: "part", width: whole ? (100 * part) / whole : 0, height: 10 }));
    return made;
  }

  /* A lane's failing cells, run by run: bars by the logarithm of their number, a base line where there are none. */
  function trend(runs) {
    const most = Math.log2(2 + Math.max(...runs.map((r) => r.failing)));
    const width = runs.length * 6;
    const made = svg("svg", { class: "trend", width, height: 18, viewBox: `0 0 ${width} 18`, role: "img", "aria-label": `failing cells in ${report.count(runs.length, "run")}` });
    runs.forEach((run, i) => {
      const height = run.failing ? 3 + (14 * Math.log2(1 + run.failing)) / most : 1.5;
      const bar = svg("rect", { class: run.failing ? "part bad" : "part", x: i * 6, y: 18 - height, width: 4, height });
      bar.append(svg("title", {}, `${run.began}: ${report.number(run.failing)} failing of ${report.count(run.cells, "cell")}`));
      made.append(bar);
    });
    return made;
  }

  /* How a cell ended, run by run, the latest on the right. */
  function strip(letters, runs) {
    const byLetter = new Map(report.site.statuses.map((s, i) => [s.letter, i]));
    return h("span", { class: "strip" }, [...letters].map((letter, i) => {
      const run = runs[i] || {};
      const status = byLetter.has(letter) ? byLetter.get(letter) : report.data.ABSENT;
      const what = status === report.data.ABSENT ? "not in this run" : report.site.statuses[status].name;
      return glyph(status, `${run.began || ""} ${what}${run.commit ? `, backend ${run.commit}` : ""}`);
    }));
  }

  /* How often each element of a storage is reached by a view; null where it is too long to draw. */
  function reach(t) {
    const shown = Math.min(t.storage, MOST);
    const counts = new Uint16Array(shown);
    const total = t.size.reduce((a, b) => a * b, 1);
    if (total > 200000) return null;
    const index = new Array(t.size.length).fill(0);
    for (let k = 0; k < total; k++) {
      let at = t.offset;
      for (let d = 0; d < index.length; d++) at += index[d] * t.stride[d];
      if (at >= 0 && at < shown) counts[at]++;
      for (let d = index.length - 1; d >= 0 && ++index[d] === t.size[d]; d--) index[d] = 0;
    }
    return counts;
  }

  /* Rows as long as the widest step of the view, so that its rows lie under each other; several steps of a vector. */
  function columns(t) {
    const moved = t.stride.filter((s, d) => s > 0 && t.size[d] > 1);
    const steps = moved.filter((s) => s > 1 && s <= 40);
    if (!steps.length) return Math.min(Math.max(t.storage, 1), 32);
    const step = Math.max(...steps);
    return moved.length === 1 ? Math.min(step * Math.max(1, Math.floor(24 / step)), t.storage) : step;
  }

  /* The storage of a tensor: what the view reaches is filled, what it reaches more than once is dark, gaps are empty. */
  function storage(t, wrong) {
    const counts = reach(t);
    if (!counts) return h("p", { class: "quiet" }, `A storage of ${report.number(t.storage)} elements, too many to draw.`);
    const wide = columns(t), side = 14, gap = 2, step = side + gap;
    const rows = Math.max(1, Math.ceil(counts.length / wide));
    const size = { width: wide * step, height: rows * step };
    const made = svg("svg", { class: "storage", ...size, viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": said(t) });
    counts.forEach((count, at) => {
      const kind = count > 1 ? "many" : count ? "once" : at < t.offset ? "before" : "gap";
      const x = (at % wide) * step + 1, y = Math.floor(at / wide) * step + 1;
      const box = svg("rect", { class: kind, x, y, width: side, height: side, rx: 2 });
      box.append(svg("title", {}, `element ${at}: ${["not reached", "reached once"][count] || `reached ${count} times`}`));
      made.append(box);
      if (kind === "before") made.append(svg("path", { class: "cross", d: `M${x + 3} ${y + side - 3}L${x + side - 3} ${y + 3}` }));
      if (count > 1) made.append(svg("text", { x: x + side / 2, y: y + side - 4, class: "times" }, count > 9 ? "+" : String(count)));
      if (wrong.includes(at)) made.append(svg("rect", { class: "wrong", x: x - 0.5, y: y - 0.5, width: side + 1, height: side + 1, rx: 3 }));
    });
    const more = t.storage > counts.length ? h("p", { class: "quiet" }, `the first ${report.number(counts.length)} of ${report.number(t.storage)} elements`) : null;
    return h("div", { class: "drawn" }, made, more);
  }

  function said(t) {
    const bit = t.bit ? `, ${t.bit} bit set` : "";
    return `size [${t.size.join(", ")}], stride [${t.stride.join(", ")}], offset ${t.offset}, storage of ${t.storage}${bit}`;
  }

  const legend = () => h("p", { class: "legend quiet" }, [
    ["once", "reached by the view"], ["many", "reached more than once"], ["before", "before the offset"], ["gap", "a gap, never to be touched"], ["wrong", "the first one that is wrong"],
  ].map(([kind, text]) => h("span", {}, h("i", { class: `key ${kind}` }), text)));

  return { glyph, bar, share, trend, strip, storage, said, legend };
})();
