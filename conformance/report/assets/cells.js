"use strict";
/* All cells, a row each with its status in every lane; search and filters are in the address. */
(function () {
  const { h, draw } = report;
  const FIELDS = ["q", "lane", "status", "family", "overload", "dtype", "layout", "route", "check", "change", "known", "cause"];
  const FAILING = "fail,error,crash,timeout";

  report.asked = () => Object.fromEntries(FIELDS.map((name) => [name, report.here().query.get(name) || ""]));

  report.views.cells = function (root) {
    root.append(h("h1", {}, "Cells"));
    return report.whenLanes().then(() => {
      let found = new Int32Array(0);
      const said = h("p", { class: "quiet", role: "status", id: "found" });
      const list = report.lists.virtual({ count: () => found.length, row: (i) => row(found[i]), label: "cells" });
      function apply() {
        const start = performance.now();
        found = report.data.filter(report.table, report.lanes, report.asked());
        report.shown = found;
        list.redraw();
        report.lastFilter = performance.now() - start;
        said.textContent = found.length === report.table.n ? report.count(found.length, "cell") : `${report.number(found.length)} of ${report.count(report.table.n, "cell")}`;
      }
      root.append(form(apply), said, order(), list.element);
      apply();
      report.walk = list;
      report.searched = apply;
    });
  };

  /* Which square of a row is which lane. */
  const order = () => h("details", { class: "order quiet" }, h("summary", {}, `${report.count(report.lanes.length, "lane")}, in this order`), h("ol", {}, report.lanes.map((l) => h("li", {}, l.name))));

  function form(apply) {
    const t = report.table, asked = report.asked();
    const change = (values) => {
      report.refine(values);
      apply();
    };
    const select = (name, title, options) => h("label", {}, h("span", {}, title), h("select", { name, onchange: (e) => change({ [name]: e.target.value }) },
      h("option", { value: "" }, "any"), options.map((o) => h("option", { value: o, selected: asked[name] === o }, o))));
    const checks = [...new Set(report.lanes.flatMap((l) => l.failing.kinds.flatMap((k) => k.split(/[(), ]+/).filter(Boolean))))].sort();
    const box = h("form", { class: "filters", onsubmit: (e) => e.preventDefault() },
      h("label", { class: "words" }, h("span", {}, "Words"), h("input", { type: "search", name: "q", id: "q", value: asked.q, placeholder: "overload, dtype, layout, message", autocomplete: "off", spellcheck: "false", oninput: (e) => change({ q: e.target.value }) })),
      h("fieldset", {}, h("legend", {}, "Status"), report.site.statuses.map((s, i) => chip(s, i, asked, change))),
      h("details", { open: innerWidth > 700 || FIELDS.slice(3).some((name) => asked[name]) }, h("summary", {}, "More filters"), h("div", { class: "selects" },
        select("lane", "Lane", report.lanes.map((l) => l.name)), select("family", "Family", t.families),
        asked.overload ? select("overload", "Overload", [asked.overload]) : null,
        asked.cause ? select("cause", "Cause", [asked.cause]) : null,
        select("dtype", "Dtype", t.dtypes), select("layout", "Layout", t.layouts), select("route", "Route", Object.keys(report.site.routes)),
        select("check", "Check", checks), select("change", "Tonight", report.site.changes), select("known", "Known", ["known", "not known"]))));
    return box;
  }

  function chip(s, i, asked, change) {
    const on = asked.status.split(",").includes(s.name);
    return h("label", { class: "chip", title: s.meaning }, h("input", { type: "checkbox", checked: on, onchange: (e) => {
      const set = new Set(report.asked().status.split(",").filter(Boolean));
      e.target.checked ? set.add(s.name) : set.delete(s.name);
      change({ status: [...set].join(",") });
    } }), draw.glyph(i, s.meaning), h("span", {}, s.name.replace("_", " ")));
  }

  const each = (i) => report.lanes.map((l) => draw.glyph(l.status[i], `${l.name}: ${l.status[i] === report.data.ABSENT ? "not in this lane" : report.site.statuses[l.status[i]].name}`));

  /* Where a square a lane is too much: the statuses that there are, each with the number of its lanes. */
  function counted(i) {
    const counts = report.site.statuses.map((_, s) => report.lanes.filter((l) => l.status[i] === s).length);
    return counts.map((n, s) => (n ? h("span", { class: "counted" }, draw.glyph(s), String(n)) : null));
  }

  function row(i) {
    const t = report.table, lanes = report.lanes;
    const told = lanes.find((l) => l.failingRow[i] >= 0 && (!report.asked().lane || l.name === report.asked().lane));
    const at = told ? told.failingRow[i] : -1;
    const query = { lane: report.asked().lane || (told && told.name) };
    return h("a", { href: report.address("cell", query, report.data.id(t, i)) },
      h("span", { class: "states" }, lanes.length > (innerWidth > 700 ? 14 : 7) ? counted(i) : each(i)),
      h("code", { class: "name" }, t.ops[t.op[i]][1], h("span", { class: "quiet" }, report.data.axes(t, i))),
      h("span", { class: "says" }, told ? [h("b", {}, told.failing.kinds[told.failing.kind[at]]), told.failing.rule[at] ? h("i", { class: "tag" }, "known") : null, " ", told.failing.excerpt[at]] : ""));
  }

  report.failingQuery = FAILING;
})();
