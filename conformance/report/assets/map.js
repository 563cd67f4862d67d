"use strict";
/* The heat map: op family × version × lane; it opens into overload × dtype, and that into dtype × layout. */
(function () {
  const { h, draw } = report;
  const STEPS = [0.01, 0.1, 0.5]; // shares of failing cells where the colour deepens

  /* Cells, failing and compared ones of a lane, summed up under keys. */
  function sums(lane, key, from, to) {
    const t = report.table, failure = report.site.statuses.map((s) => s.failure);
    const pass = report.site.statuses.findIndex((s) => s.name === "pass");
    const made = new Map();
    for (let i = from; i < to; i++) {
      const status = lane.status[i];
      if (status === report.data.ABSENT) continue;
      const k = key(t, i);
      let sum = made.get(k);
      if (!sum) made.set(k, (sum = { cells: 0, failing: 0, passing: 0 }));
      sum.cells++;
      if (failure[status]) sum.failing++;
      else if (status === pass) sum.passing++;
    }
    return made;
  }

  function heat(sum, link, what) {
    if (!sum) return h("td", { class: "heat absent", title: `${what}: not in this lane` });
    const level = 1 + STEPS.filter((step) => sum.failing >= step * sum.cells).length;
    const kind = sum.failing ? `bad${level}` : sum.passing ? "good" : "none";
    const title = `${what}: ${sum.failing} failing, ${sum.passing} passing of ${sum.cells} cells`;
    return h("td", { class: `heat ${kind}`, title }, h("a", { href: link, "aria-label": title }, sum.failing ? report.number(sum.failing) : sum.passing ? "·" : "–"));
  }

  report.views.map = function (root) {
    return report.whenLanes().then(() => {
      const { query } = report.here();
      const lane = report.lanes.find((l) => l.name === query.get("lane")) || report.lanes[0];
      const family = query.get("family"), overload = query.get("overload");
      if (!family) return families(root);
      if (!overload) return overloads(root, family, lane);
      return layouts(root, family, overload, lane);
    });
  };

  function families(root) {
    const t = report.table, versions = [];
    const order = report.lanes.map((l, i) => ({ l, facts: report.site.lanes[i] }));
    order.sort((a, b) => a.facts.torch.localeCompare(b.facts.torch, "en", { numeric: true }));
    order.forEach(({ facts }) => {
      const last = versions[versions.length - 1], torch = facts.torch.split("+")[0];
      if (last && last.torch === torch) last.span++;
      else versions.push({ torch, span: 1 });
    });
    const counted = order.map(({ l }) => sums(l, (of, i) => of.ops[of.op[i]][0], 0, t.n));
    const rows = t.families.map((family, f) => h("tr", {}, h("th", { scope: "row" }, h("a", { href: report.address("map", { family }), "data-walk": true }, family)),
      order.map(({ l }, i) => heat(counted[i].get(f), report.address("map", { family, lane: l.name }), `${family}, ${l.name}`))));
    root.append(h("h1", {}, "Map"), h("p", { class: "quiet" }, "Failing cells by op family, torch version and lane; a square opens into overloads and dtypes."),
      h("div", { class: "wide" }, h("table", { class: "map" },
        h("thead", {}, h("tr", {}, h("th", {}), versions.map((v) => h("th", { colspan: v.span, scope: "colgroup", class: "version" }, v.torch))),
          h("tr", {}, h("th", {}, "family"), order.map(({ facts }) => h("th", { scope: "col", title: facts.name, class: "tilted lane-head" }, h("span", {}, [facts.environment, facts.build].filter(Boolean).join(" ")))))),
        h("tbody", {}, rows))), key());
  }

  function range(family, overload) {
    const t = report.table, f = t.families.indexOf(family);
    const ops = t.ops.map((op, i) => (op[0] === f && (!overload || op[1] === overload) ? i : -1)).filter((i) => i >= 0);
    return ops.length ? [t.starts[ops[0]], t.starts[ops[ops.length - 1] + 1], ops] : [0, 0, []];
  }

  function trail(family, overload, lane) {
    const select = h("select", { "aria-label": "Lane", onchange: (e) => (location.hash = report.address("map", { family, overload, lane: e.target.value })) },
      report.lanes.map((l) => h("option", { selected: l === lane }, l.name)));
    return h("nav", { class: "trail", "aria-label": "Where this is" }, h("a", { href: report.address("map") }, "Map"), " / ",
      overload ? [h("a", { href: report.address("map", { family, lane: lane.name }) }, family), " / ", h("code", {}, overload)] : h("span", {}, family), select);
  }

  const used = (list, of, from, to) => {
    const seen = new Set();
    for (let i = from; i < to; i++) seen.add(of[i]);
    return list.map((name, i) => [name, i]).filter(([, i]) => seen.has(i));
  };

  function overloads(root, family, lane) {
    const t = report.table, [from, to, ops] = range(family);
    const dtypes = used(t.dtypes, t.dtypeOf, from, to);
    const counted = sums(lane, (of, i) => of.op[i] * 256 + of.dtypeOf[i], from, to);
    root.append(trail(family, "", lane), h("h1", {}, family));
    if (!ops.length) return void root.append(h("p", {}, "No lane has a cell of this family."));
    root.append(h("div", { class: "wide" }, h("table", { class: "map" },
      h("thead", {}, h("tr", {}, h("th", {}, "overload"), dtypes.map(([name]) => h("th", { scope: "col", class: "tilted" }, h("span", {}, name))))),
      h("tbody", {}, ops.map((op) => {
        const link = report.address("map", { family, overload: t.ops[op][1], lane: lane.name });
        return h("tr", {}, h("th", { scope: "row" }, h("a", { href: link, "data-walk": true }, h("code", {}, t.ops[op][1]))),
          dtypes.map(([name, d]) => heat(counted.get(op * 256 + d), link, `${t.ops[op][1]}, ${name}`)));
      })))), key());
  }

  function layouts(root, family, overload, lane) {
    const t = report.table, [from, to] = range(family, overload);
    root.append(trail(family, overload, lane), h("h1", {}, h("code", {}, overload)));
    if (from === to) return void root.append(h("p", {}, "No lane has a cell of this overload."));
    const dtypes = used(t.dtypes, t.dtypeOf, from, to), columns = used(t.layouts, t.layoutOf, from, to);
    const at = new Map();
    for (let i = from; i < to; i++) at.set(t.dtypeOf[i] * 256 + t.layoutOf[i], i);
    root.append(h("div", { class: "wide" }, h("table", { class: "map" },
      h("thead", {}, h("tr", {}, h("th", {}, "dtype"), columns.map(([name]) => h("th", { scope: "col", class: "tilted" }, h("span", {}, name))))),
      h("tbody", {}, dtypes.map(([name, d]) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, name)), columns.map(([layout, l]) => {
        const i = at.get(d * 256 + l);
        if (i === undefined || lane.status[i] === report.data.ABSENT) return h("td", { class: "one" }, i === undefined ? "" : draw.glyph(report.data.ABSENT));
        const s = report.site.statuses[lane.status[i]];
        const title = `${name}-${layout}: ${s.name}${lane.why[i] ? `, ${lane.reasons[lane.why[i]]}` : ""}`;
        return h("td", { class: "one" }, h("a", { href: report.address("cell", { lane: lane.name }, report.data.id(t, i)), "aria-label": title, "data-walk": s.failure }, draw.glyph(lane.status[i], title)));
      })))))), h("p", { class: "legend quiet" }, report.site.statuses.map((s, i) => h("span", {}, draw.glyph(i), ` ${s.name}`))));
  }

  const key = () => h("p", { class: "legend quiet" }, [["good", "·", "nothing fails"], ["bad1", "1", "some fail"], ["bad2", "2", "1 % and more"], ["bad3", "3", "10 % and more"], ["bad4", "4", "half and more"], ["none", "–", "nothing to compare"], ["absent", "", "not in the lane"]]
    .map(([kind, text, said]) => h("span", {}, h("i", { class: `heat ${kind}` }, text), ` ${said}`)));
})();
