"use strict";
/* The cells that waver: how each ended night by night, and why it counts as flaky. */
report.views.flaky = function (root) {
  const { h, draw } = report;
  root.append(h("h1", {}, "Flaky"), h("p", { class: "quiet" }, "One build both failed and did not; or a cell went over too often; or the process died in some of several tries."));
  return report.whenLanes().then(() => {
    const all = report.lanes.flatMap((l, n) => l.flaky.map(([cell, id, why]) => ({ l, n, cell, id, why })));
    if (!all.length) return void root.append(h("p", {}, "None."));
    root.append(report.lists.more(all, ({ l, n, cell, id, why }) => h(cell === null ? "div" : "a", { class: "item flaky", href: cell === null ? null : report.address("cell", { lane: l.name }, id), "data-walk": cell !== null },
      h("code", {}, id.split("::").pop()), cell !== null && l.history[cell] ? draw.strip(l.history[cell].slice(-20), report.site.lanes[n].runs.slice(-20)) : "", h("span", {}, why), h("span", { class: "quiet" }, l.name))));
  });
};
