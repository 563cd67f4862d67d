"use strict";
/* Coverage by route and lane, what is not implemented, and the overloads that were not compared, each with its reason. */
(function () {
  const { h, draw } = report;

  report.views.coverage = function (root) {
    const { query } = report.here();
    const lanes = report.site.lanes.filter((l) => l.coverage);
    root.append(h("h1", {}, "Coverage"), h("p", { class: "quiet" }, "Overloads compared with CPU in at least one case, by the route that serves them."));
    if (!lanes.length) return void root.append(h("p", {}, "No lane has a summary: the runs were cut off."));
    const routes = [...new Set(lanes.flatMap((l) => Object.keys(l.coverage.by_route)))];
    const most = lanes.reduce((a, b) => (b.coverage.compared > a.coverage.compared ? b : a));
    const chosen = lanes.find((l) => l.name === query.get("lane")) || most;
    root.append(h("div", { class: "wide" }, h("table", { class: "plain cover" },
      h("thead", {}, h("tr", {}, h("th", {}, "lane"), ["all", ...routes].map((r) => h("th", { title: report.site.routes[r] }, r)))),
      h("tbody", {}, lanes.map((l) => h("tr", { class: l === chosen ? "chosen" : null },
        h("th", { scope: "row" }, h("a", { href: report.address("coverage", { lane: l.name }), "data-walk": true }, l.name)),
        [l.coverage, ...routes.map((r) => l.coverage.by_route[r])].map((c) => h("td", {}, c ? [draw.share(c.compared, c.total), h("span", {}, report.percent(c.compared, c.total)), h("span", { class: "quiet" }, ` ${report.number(c.compared)} / ${report.number(c.total)}`)] : "–"))))))));
    unimplemented(root, chosen);
    notReached(root, chosen);
  };

  function unimplemented(root, lane) {
    const all = lane.unimplemented;
    if (!all.length) return;
    root.append(h("h2", {}, "Not implemented", h("span", { class: "quiet" }, ` ${report.count(all.length, "operator")} that calls of recorded models need, in ${lane.name}`)),
      report.lists.more(all, (of) => h("details", { class: "item", "data-walk": true },
        h("summary", {}, h("span", { class: "count" }, report.number(of.calls)), " ", h("code", {}, of.operator), h("span", { class: "quiet" }, ` ${report.count(of.standing, "other overload")} cannot run without it`)),
        h("p", { class: "names" }, Object.entries(of.models).map(([name, calls]) => [h("code", {}, name), ` ${report.number(calls)} `])))));
  }

  function notReached(root, lane) {
    const all = lane.coverage.not_reached;
    const box = h("div", {}), word = report.here().query.get("q") || "";
    const draw_ = (text) => {
      const asked = text.toLowerCase();
      const found = all.filter((e) => `${e.overload} ${e.reason}`.toLowerCase().includes(asked));
      const groups = new Map();
      found.forEach((e) => groups.set(e.reason, [...(groups.get(e.reason) || []), e.overload]));
      const sorted = [...groups].sort((a, b) => b[1].length - a[1].length);
      box.replaceChildren(report.lists.more(sorted, ([reason, overloads]) => h("details", { class: "item", "data-walk": true },
        h("summary", {}, h("span", { class: "count" }, report.number(overloads.length)), reason), h("p", { class: "names" }, overloads.map((o) => [h("code", {}, o), " "])))));
    };
    root.append(h("h2", {}, "Not reached", h("span", { class: "quiet" }, ` ${report.count(all.length, "overload")} in ${lane.name}`)));
    if (!all.length) return;
    root.append(h("input", { type: "search", id: "q", value: word, placeholder: "overload or reason", "aria-label": "Search overloads", oninput: (e) => {
      report.refine({ q: e.target.value });
      draw_(e.target.value);
    } }), box);
    draw_(word);
  }
})();
