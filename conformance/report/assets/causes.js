"use strict";
/* The fewest kernels that explain the failing cells of each lane, those that explain most first. */
(function () {
  const { h, draw, command } = report;
  const OPEN = 3; // causes of a lane that are open at first

  report.views.causes = function (root) {
    const { about, query } = report.here();
    root.append(h("h1", {}, "Causes"), h("p", { class: "quiet" }, "The fewest kernels that explain the failing cells. A kernel explains a failing cell whose case calls it. Known failures are left out."));
    return report.whenLanes().then(() => {
      const lanes = report.lanes.filter((l) => l.causes.length);
      const chosen = lanes.filter((l) => !query.get("lane") || l.name === query.get("lane"));
      if (!lanes.length) return void root.append(h("p", {}, "No cell fails that is not known to fail."));
      root.append(lane(lanes, about));
      if (!chosen.length) root.append(h("p", {}, "No cell of this lane fails that is not known to fail."));
      chosen.forEach((l) => root.append(...section(l, about)));
      const asked = about && root.querySelector(".cause[open]");
      if (about && !asked) root.append(h("p", {}, h("code", {}, about), " is no cause here."));
      if (asked) asked.scrollIntoView({ block: "start" });
    });
  };

  function lane(lanes, about) {
    const asked = report.here().query.get("lane");
    return h("form", { class: "filters", onsubmit: (e) => e.preventDefault() }, h("label", {}, h("span", {}, "Lane"), h("select", { name: "lane", onchange: (e) => (location.hash = report.address("causes", { lane: e.target.value }, about)) },
      h("option", { value: "" }, "any"), lanes.map((l) => h("option", { value: l.name, selected: l.name === asked }, l.name)))));
  }

  function section(l, about) {
    const cells = l.causes.reduce((n, c) => n + c.cells.length, 0);
    return [h("h2", {}, l.name, h("span", { class: "quiet" }, ` ${report.count(cells, "failing cell")}, ${l.to_mend}`)),
      report.lists.more(l.causes.map((c, i) => [c, about ? [c.name, c.kernel].includes(about) : i < OPEN]), ([c, open]) => cause(l, c, open))];
  }

  function cause(l, c, open) {
    return h("details", { class: "item cause", open, "data-walk": true },
      h("summary", {}, h("span", { class: "count" }, report.number(c.cells.length)), " ", h("a", { href: report.address("causes", { lane: l.name }, c.name), title: "an address of this cause" }, h("code", {}, c.name)), h("span", { class: "quiet" }, ` ${report.count(c.overloads.length, "overload")}`)),
      c.fails_by ? h("p", {}, h("b", {}, "all"), ` fail by ${c.fails_by}`) : null,
      c.contrasts.map((of) => h("p", {}, h("b", {}, of.axis), ` fails in ${of.failing.join(", ")}; all pass in ${of.passing.join(", ")}`)),
      h("p", {}, h("a", { href: report.address("cells", { lane: l.name, cause: c.name }) }, report.count(c.cells.length, "cell"))),
      overloads("Its own", l, c, c.overloads.filter((o) => o.own)), overloads("They call it", l, c, c.overloads.filter((o) => !o.own)),
      h("h3", {}, "Example"), h("p", { class: "case" }, draw.glyph(l.status[c.cell]), " ", h("a", { href: report.address("cell", { lane: l.name }, c.example) }, h("code", {}, c.example))),
      Object.entries(c.commands).map(([what, text]) => [h("h3", {}, what[0].toUpperCase() + what.slice(1)), command(text)]));
  }

  function overloads(title, l, c, some) {
    if (!some.length) return null;
    return [h("h3", {}, title), h("p", { class: "overloads" }, some.map((o, i) => [i ? ", " : "", h("a", { href: report.address("cells", { lane: l.name, overload: o.name, cause: c.name }) }, h("code", {}, o.name)), h("span", { class: "quiet" }, ` ${report.number(o.cells)}`)]))];
  }
})();
