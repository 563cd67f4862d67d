"use strict";
/* The first page, and what is new: every lane with its counts, coverage, time and account; what changed tonight. */
(function () {
  const { h, draw } = report;
  const LOUD = ["newly failing", "flaky", "changed kind", "new"];

  report.views.overview = function (root) {
    const { site } = report;
    root.append(
      h("h1", {}, site.backends.join(", ") || "Op conformance"),
      h("p", { class: "quiet" }, `${report.count(site.lanes.length, "lane")} · ${report.count(report.table.n, "cell")} · made ${site.made}`),
      headline(site),
      h("h2", {}, "Lanes"),
      h("div", { class: "lanes" }, site.lanes.map(lane)),
    );
    root.append(h("section", {}, tonight(site), worst(site)));
  };

  function headline(site) {
    const sum = (of) => site.lanes.reduce((total, l) => total + of(l), 0);
    const failing = sum((l) => l.failing), known = sum((l) => l.known);
    const newly = sum((l) => l.changes["newly failing"] || 0);
    const wrong = site.lanes.filter((l) => l.account);
    const compared = site.lanes.some((l) => l.before);
    return h("div", { class: "cards" },
      card("Newly failing", compared ? report.number(newly) : "–", compared ? "since the run before, all lanes" : "no earlier run to compare with", newly ? "bad" : "good", report.address("new")),
      card("Failing", report.number(failing), known ? `${report.number(known)} of them known` : "all lanes, none of them known", failing > known ? "bad" : "good", report.address("cells", { status: "fail,error,crash,timeout" })),
      card("Flaky", report.number(sum((l) => l.flaky)), "cells that waver between runs", "", report.address("flaky")),
      card("Accounting", wrong.length ? "off" : "balances", wrong.length ? `in ${report.count(wrong.length, "lane")}` : "every cell in exactly one status", wrong.length ? "bad" : "good", null));
  }

  function card(title, figure, said, mood, link) {
    const inside = [h("span", { class: "title" }, title), h("span", { class: "figure" }, figure), h("span", { class: "quiet" }, said)];
    return h(link ? "a" : "div", { class: `card ${mood}`, href: link, "data-walk": Boolean(link) }, inside);
  }

  function lane(l) {
    const failures = report.site.statuses.filter((s) => s.failure && l.by_status[s.name]);
    const coverage = l.coverage || { compared: 0, total: 0 };
    const partial = l.complete ? (l.ended ? "" : "cut off") : "a part of the cells";
    const link = failures.length ? report.address("cells", { lane: l.name, status: failures.map((s) => s.name).join(",") }) : report.address("cells", { lane: l.name });
    return h("a", { class: "lane", href: link, "data-walk": true },
      h("div", { class: "who" }, h("strong", {}, l.name), h("span", { class: "quiet" }, `${l.began} · torch ${l.torch} · ${l.commit || "unknown commit"}`), partial && h("span", { class: "tag" }, `${l.tier}, ${partial}`), l.later ? h("span", { class: "tag" }, `${report.count(l.later, "later partial run")} not shown`) : null),
      h("div", { class: "what" }, draw.bar(l.by_status),
        h("span", { class: "counts" }, failures.length ? failures.map((s) => h("span", { class: "counted" }, draw.glyph(report.site.statuses.indexOf(s)), `${report.number(l.by_status[s.name])} ${s.name}`)) : h("span", { class: "quiet" }, "nothing fails"), l.known ? h("span", { class: "quiet" }, `${report.number(l.known)} known`) : null, news(l), l.runs.length > 1 ? draw.trend(l.runs) : null)),
      h("div", { class: "cover" }, draw.share(coverage.compared, coverage.total), h("span", { class: "quiet" }, coverage.total ? `${report.percent(coverage.compared, coverage.total)}, ${report.number(coverage.compared)} of ${report.number(coverage.total)} overloads compared` : "coverage is not known")),
      h("dl", { class: "figures" }, figure("cells", report.number(l.collected)), figure("cases", report.number(l.cases)), figure("wall", report.seconds(l.wall_s)), figure("CPU", report.seconds(l.cpu_s)), figure("account", l.account ? "✗" : "✓", l.account || "balances")),
      l.account ? h("p", { class: "alarm" }, l.account) : null);
  }

  const figure = (name, value, title) => h("div", { title }, h("dt", {}, name), h("dd", {}, value));

  function news(l) {
    const said = LOUD.filter((c) => l.changes[c]).map((c) => `${report.number(l.changes[c])} ${c}`);
    return said.length ? h("span", { class: "news" }, said.join(", ")) : null;
  }

  function tonight(site) {
    const groups = site.newly.map((g) => ({ ...g, cells: new Set(g.cells), lanes: new Set(g.lanes) }));
    if (!groups.length) return [];
    return [h("h2", {}, "Newly failing"), h("div", { class: "listed" }, groups.map(report.changeRow)),
      h("p", {}, h("a", { href: report.address("new") }, "Everything that changed"))];
  }

  function worst(site) {
    if (!site.worst.length) return [];
    return [h("h2", {}, "Most failing cells"), h("div", { class: "listed" }, site.worst.map(({ family, overload, count }) => {
      const query = { family, overload, status: "fail,error,crash,timeout" };
      return h("a", { class: "item", href: report.address("cells", query), "data-walk": true },
        h("span", { class: "count" }, report.number(count)), h("code", {}, overload), h("span", { class: "quiet" }, family));
    }))];
  }

  /* What changed, cells alike put together: of one overload, from one kind to another, in any lanes. */
  report.changes = function () {
    const groups = new Map();
    report.lanes.forEach((l) => l.changed.cell.forEach((cell, i) => {
      const words = (n) => l.changed.words[l.changed[n][i]];
      const overload = typeof cell === "number" ? report.table.ops[report.table.op[cell]][1] : cell.split("::").pop().split("[")[0];
      const g = { change: report.site.changes[l.changed.change[i]], overload, before: words("before"), after: words("after"), note: words("note"), cells: new Set(), lanes: new Set(), count: 0 };
      const key = JSON.stringify([l.changed.change[i], g.overload, g.before, g.after, g.note]);
      if (!groups.has(key)) groups.set(key, g);
      const group = groups.get(key);
      group.cells.add(cell);
      group.lanes.add(l.name);
      group.count++;
    }));
    const order = report.site.changes;
    return [...groups.values()].sort((a, b) => order.indexOf(a.change) - order.indexOf(b.change) || b.count - a.count);
  };

  report.changeRow = function (g) {
    const t = report.table, [first] = g.cells, [lane] = g.lanes;
    const only = g.cells.size === 1 && typeof first === "number";
    const family = typeof first === "number" ? t.families[t.ops[t.op[first]][0]] : "";
    const one = g.lanes.size === 1 ? lane : "";
    const link = only ? report.address("cell", { lane }, report.data.id(t, first)) : report.address("cells", { lane: one, family, overload: g.overload, change: g.change });
    return h(family ? "a" : "div", { class: "item change", href: family ? link : null, "data-walk": Boolean(family) },
      h("span", { class: "count" }, report.number(g.count)),
      h("code", {}, only ? report.data.name(t, first) : g.overload),
      h("span", { class: "way" }, g.before, " → ", h("b", {}, g.after)),
      h("span", { class: "quiet", title: [...g.lanes].join(", ") }, one || report.count(g.lanes.size, "lane"), g.note ? `; ${g.note}` : ""));
  };

  report.views.new = function (root) {
    const { site } = report;
    root.append(h("h1", {}, "New tonight"), h("p", { class: "quiet" }, "Each lane's run against the one before it."));
    return report.whenLanes().then(() => {
      const groups = report.changes();
      const alone = site.lanes.filter((l) => !l.before).map((l) => l.name);
      if (alone.length) root.append(h("p", { class: "quiet" }, `No earlier run to compare with: ${alone.join(", ")}`));
      if (!groups.length && alone.length < site.lanes.length) root.append(h("p", {}, "Nothing changed."));
      site.changes.forEach((change) => {
        const of = groups.filter((g) => g.change === change);
        const cells = of.reduce((n, g) => n + g.count, 0);
        if (of.length) root.append(h("h2", {}, change[0].toUpperCase() + change.slice(1), h("span", { class: "quiet" }, ` ${report.count(cells, "cell")}`)), report.lists.more(of, report.changeRow));
      });
    });
  };
})();
