"use strict";
/* A cell's page: how it ended in every lane, night by night; of a failure what differs, its arguments drawn, commands. */
(function () {
  const { h, draw, command } = report;

  report.views.cell = function (root) {
    const { about, query } = report.here();
    return report.whenLanes().then(() => {
      const t = report.table, i = report.data.find(t, about);
      if (i < 0) return void root.append(h("h1", {}, "No such cell"), h("p", {}, h("code", {}, about), " is in no lane of this report."));
      const n = lane(i, query.get("lane"));
      const [family, overload] = t.ops[t.op[i]];
      root.append(
        h("nav", { class: "trail" }, h("a", { href: report.address("map", { family: t.families[family], lane: report.lanes[n].name }) }, t.families[family]), " / ", h("a", { href: report.address("map", { family: t.families[family], overload, lane: report.lanes[n].name }) }, overload), beside(i)),
        h("h1", {}, h("code", {}, overload), h("small", {}, t.dtypes[t.dtypeOf[i]] ? `${t.dtypes[t.dtypeOf[i]]} · ${t.layouts[t.layoutOf[i]]}` : "scenario")),
        lanes(i, n));
      const box = h("section", {});
      root.append(box);
      return said(box, i, n);
    });
  };

  /* The lane asked for; else one in which the cell fails; else one that has it. */
  function lane(i, name) {
    const tests = [(l) => l.name === name, (l) => l.failingRow[i] >= 0, (l) => l.status[i] !== report.data.ABSENT];
    return Math.max(0, ...tests.map((test) => report.lanes.findIndex(test)).filter((n) => n >= 0).slice(0, 1));
  }

  /* The cells next to it in the list that it was opened from. */
  function beside(i) {
    const list = report.shown || [];
    const at = list.indexOf(i);
    if (at < 0) return null;
    const link = (j, text, id) => (list[j] === undefined ? null : h("a", { id, href: report.address("cell", Object.fromEntries(report.here().query), report.data.id(report.table, list[j])) }, text));
    return h("span", { class: "beside" }, link(at - 1, "← previous", "previous"), ` ${report.number(at + 1)} of ${report.number(list.length)} `, link(at + 1, "next →", "next"));
  }

  function lanes(i, chosen) {
    const lacking = report.lanes.filter((l, n) => n !== chosen && l.status[i] === report.data.ABSENT);
    return h("div", { class: "tabs" }, report.lanes.map((l, n) => {
      if (lacking.includes(l)) return null;
      const facts = report.site.lanes[n], strip = l.history[i];
      return h("a", { class: n === chosen ? "tab chosen" : "tab", "aria-current": n === chosen ? "true" : null, href: report.address("cell", { lane: l.name }, report.data.id(report.table, i)) },
        draw.glyph(l.status[i]), h("span", { class: "lane-name" }, l.name),
        strip ? draw.strip(strip.slice(-12), facts.runs.slice(-12)) : null);
    }), lacking.length ? h("span", { class: "quiet elsewhere", title: lacking.map((l) => l.name).join(", ") }, `not in ${report.count(lacking.length, "other lane")}`) : null);
  }

  async function said(box, i, n) {
    const lane = report.lanes[n], status = lane.status[i];
    if (status === report.data.ABSENT) return void box.append(h("p", {}, `${lane.name} has no such cell.`));
    const s = report.site.statuses[status], row = lane.failingRow[i];
    box.append(h("p", { class: "verdict" }, draw.glyph(status), h("b", {}, row < 0 ? s.name : lane.failing.kinds[lane.failing.kind[row]]), ` ${s.meaning}; route ${lane.routes[lane.route[i]] || "unknown"}`));
    if (lane.why[i]) box.append(h("p", {}, lane.reasons[lane.why[i]]));
    changed(box, lane, i);
    cause(box, lane, i);
    if (row >= 0) await failures(box, lane, i, n);
    history_(box, lane, i, n);
    searches(box, i);
  }

  async function failures(box, lane, i, n) {
    const row = lane.failingRow[i];
    known(box, lane, row);
    const piece = await report.load(`pages-${n}-${Math.floor(row / report.site.piece)}`);
    const page = piece[i];
    const asked = report.here().about;
    page.failures.forEach((f, at) => box.append(failure(f, at ? "" : page.program, page, asked.includes("#") ? f.case === asked : at < 3, lane)));
    const one = asked.includes("#") && box.querySelector(".failure[open]");
    if (one) one.scrollIntoView({ block: "center" });
    if (page.more) box.append(h("p", { class: "quiet" }, `${report.count(page.more, "more failing case")}; the store holds them all.`));
    box.append(h("p", { class: "quiet" }, `${report.count(page.cases, "case")} run, ${report.number(page.compared)} compared, ${report.number(page.wall_ms)} ms`));
  }

  function changed(box, lane, i) {
    const row = lane.changed.cell.indexOf(i);
    if (row < 0) return;
    const word = (name) => lane.changed.words[lane.changed[name][row]];
    box.append(h("p", { class: lane.failingRow[i] < 0 ? "" : "news" }, `Tonight ${report.site.changes[lane.changed.change[row]]}: ${word("before")} → ${word("after")}${word("note") ? `; ${word("note")}` : ""}`));
  }

  function cause(box, lane, i) {
    const found = lane.causes[lane.causeOf[i]];
    if (found) box.append(h("p", { class: "cause-of" }, "Cause: ", h("a", { href: report.address("causes", { lane: lane.name }, found.name) }, h("code", {}, found.name)), `, which explains ${report.count(found.cells.length, "failing cell")}`));
  }

  function known(box, lane, row) {
    const rule = lane.failing.rules[lane.failing.rule[row] - 1];
    if (rule) box.append(h("p", { class: "known" }, "Known: ", rule.reason || "no reason given", " (", h("code", {}, rule.rule), ") ", rule.link ? report.outward(rule.link) : ""));
  }

  function failure(f, program, page, open, lane) {
    const meaning = report.site.checks[f.check];
    const tensors = f.arguments.filter((a) => a.dtype);
    return h("details", { class: "failure", open }, h("summary", {}, h("b", {}, f.check || "died"), meaning ? h("span", { class: "quiet" }, ` ${meaning}`) : null),
      h("p", { class: "case" }, h("a", { href: report.address("cell", { lane: lane.name }, f.case), title: "an address of this case" }, h("code", {}, f.case))),
      h("pre", { class: "message" }, [f.arguments.length ? [] : [f.head], f.said].flat().join("\n"), f.cut ? "\n[cut; the store holds all of it]" : ""),
      facts(f.facts),
      f.arguments.length ? h("h3", {}, "Arguments") : null,
      f.arguments.length ? h("div", { class: "arguments" }, f.arguments.map(argument)) : null,
      tensors.length ? draw.legend() : example(page.example, f),
      h("h3", {}, "Repeat it"), command(f.repeat), ...(f.script ? [h("h3", {}, "A script without the suite"), command(f.script)] : []),
      program ? h("details", { class: "program" }, h("summary", {}, `The script, ${report.count(program.trimEnd().split("\n").length, "line")}`), command(program)) : null);
  }

  function facts(given) {
    const rows = Object.entries(given);
    if (!rows.length) return null;
    const text = (v) => (typeof v === "string" ? v : JSON.stringify(v));
    return h("dl", { class: "figures" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, text(value)))));
  }

  function argument(a) {
    if (!a.dtype) return h("div", { class: "argument" }, h("p", {}, h("code", {}, `${a.name}: ${a.text}`)));
    const where = [a.shared_with ? `in the storage of ${a.shared_with}` : "", a.same_as ? `the same tensor as ${a.same_as}` : ""].filter(Boolean).join(", ");
    return h("div", { class: "argument" }, h("p", {}, h("code", {}, a.name), ` ${a.dtype} ${a.layout}`, where ? h("b", {}, `, ${where}`) : ""), h("p", { class: "quiet" }, draw.said(a)), draw.storage(a, a.wrong));
  }

  function example(t, f) {
    if (!t || f.arguments.length) return null;
    return [h("h3", {}, `The layout ${t.layout}, on an example`), h("div", { class: "argument" }, h("p", { class: "quiet" }, draw.said(t)), draw.storage(t, []))];
  }

  function history_(box, lane, i, n) {
    const strip = lane.history[i], runs = report.site.lanes[n].runs;
    if (!strip) return;
    box.append(h("h2", {}, "History"), h("div", { class: "wide" }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["run", "ended", "backend", "torch"].map((c) => h("th", {}, c)))),
      h("tbody", {}, runs.map((run, k) => h("tr", {}, h("td", {}, run.began || run.name), h("td", {}, draw.strip(strip[k], [run])), h("td", {}, h("code", {}, run.commit || "unknown")), h("td", {}, run.torch))).reverse()))));
  }

  function searches(box, i) {
    const id = report.data.id(report.table, i);
    report.site.searches.forEach((search) => search.cases.filter((c) => c.case.split("#")[0] === id).forEach((c) => box.append(h("h2", {}, "Bisect"), report.bisected(search, c))));
  }
})();
