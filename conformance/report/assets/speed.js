"use strict";
/* Speed: of the latest measured run of each lane the roofline, and what to speed up next. */
(function () {
  const { h, svg } = report;
  const W = 720, H = 320, LEFT = 84, BOTTOM = 40, TOP = 12, RIGHT = 42;
  const [OVERLOAD, SIZE, ROUTE, BOUND, DEVICE, CPU, COULD, LOST, BYTES, FLOPS, RATIO, COPIED] = Array(12).keys();

  report.views.speed = function (root) {
    const runs = report.site.perf;
    root.append(h("h1", {}, "Speed"));
    if (!runs.length) return void root.append(h("p", {}, "Not measured: these results hold no run of conformance perf."));
    const chosen = runs.find((r) => r.lane === report.here().query.get("lane")) || runs[0];
    const moved = chosen.rows.filter((r) => r[BYTES]), multiplied = chosen.rows.filter((r) => r[FLOPS] && r[BYTES]);
    const best = chosen.best;
    report.fill(root, {}, [
      h("p", { class: "quiet" }, runs.map((r) => [h("a", { href: report.address("speed", { lane: r.lane }), "aria-current": r === chosen }, r.lane), " "])),
      h("p", { class: "quiet" }, `${chosen.name}: ${report.count(chosen.measured, "case")} measured of ${report.number(chosen.cases)}, next to ${chosen.threads || 1} thread(s) of ${chosen.cpu || "CPU"}.`),
      limits(chosen),
      h("h2", {}, "Seconds a call by bytes moved"),
      h("p", { class: "quiet" }, "The line is the least time: the copy of one element, then the bytes at the speed of a large copy. Points far above it lose most."),
      chart(moved.map((r) => [r[BYTES], r[DEVICE], r]), (bytes) => Math.max(best.launch || 0, best.bandwidth ? bytes / best.bandwidth : 0), "B", "s", chosen),
      multiplied.length ? [h("h2", {}, "Roofline"), h("p", { class: "quiet" }, "Operations a second by operations a byte, of the ops that torch has a formula for. The line is what the machine reaches."),
        chart(multiplied.map((r) => [r[FLOPS] / r[BYTES], r[FLOPS] / r[DEVICE], r]), (x) => Math.min(best.flops || Infinity, best.bandwidth ? x * best.bandwidth : Infinity), "FLOP/B", "FLOP/s", chosen)] : null,
      h("h2", {}, "To speed up next"),
      h("p", { class: "quiet" }, "By the seconds that one call loses against what the machine allows. ", h("code", {}, "conformance perf show --recorded"), " weights them by the calls of a program."),
      table(chosen),
    ]);
  };

  const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
  function amount(n, unit) {
    if (n === null || n === undefined) return "–";
    if (!n) return `0 ${unit}`;
    const [by, prefix] = PREFIXES.find(([by]) => Math.abs(n) >= by) || PREFIXES[PREFIXES.length - 1];
    return `${Number((n / by).toPrecision(3))} ${prefix}${unit}`;
  }

  const limits = (run) => h("div", { class: "wide" }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["", "large copy", "matrix product", "copy of one element"].map((c) => h("th", {}, c)))),
    h("tbody", {}, [["device", run.device], ["CPU", run.host]].map(([name, l]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, amount(l.bandwidth, "B/s")), h("td", {}, amount(l.flops, "FLOP/s")), h("td", {}, amount(l.launch, "s")))))));

  /* Points on two logarithmic axes, and the limit as a line. */
  function chart(points, limit, xUnit, yUnit, run) {
    if (!points.length) return h("p", {}, "No case moves bytes.");
    const span = (values) => {
      const sound = values.filter((v) => v > 0 && isFinite(v)).map(Math.log10);
      const low = Math.floor(Math.min(...sound)), high = Math.ceil(Math.max(...sound));
      return [low, high > low ? high : low + 1];
    };
    const [x0, x1] = span(points.map((p) => p[0]));
    const steps = Array.from({ length: 97 }, (_, i) => 10 ** (x0 + ((x1 - x0) * i) / 96));
    const [y0, y1] = span([...points.map((p) => p[1]), ...steps.map(limit)]);
    const x = (v) => LEFT + ((Math.log10(v) - x0) / (x1 - x0)) * (W - LEFT - RIGHT);
    const y = (v) => H - BOTTOM - ((Math.log10(v) - y0) / (y1 - y0)) * (H - BOTTOM - TOP);
    const made = svg("svg", { class: "roofline", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${report.count(points.length, "case")}: ${yUnit} by ${xUnit}` });
    for (let e = x0; e <= x1; e++) made.append(svg("line", { class: "grid", x1: x(10 ** e), x2: x(10 ** e), y1: TOP, y2: H - BOTTOM }), svg("text", { x: x(10 ** e), y: H - BOTTOM + 16, class: "tick middle" }, amount(10 ** e, xUnit)));
    for (let e = y0; e <= y1; e++) made.append(svg("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: y(10 ** e), y2: y(10 ** e) }), svg("text", { x: LEFT - 6, y: y(10 ** e) + 4, class: "tick end" }, amount(10 ** e, yUnit)));
    const line = steps.map((v) => [v, limit(v)]).filter(([, v]) => v > 0 && isFinite(v));
    if (line.length) made.append(svg("polyline", { class: "limit", points: line.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ") }));
    points.forEach(([a, b, row]) => {
      const point = svg("circle", { class: `point ${run.words[row[ROUTE]]}`, cx: x(a).toFixed(1), cy: y(b).toFixed(1), r: 3 });
      point.append(svg("title", {}, `${run.words[row[OVERLOAD]]} ${run.words[row[SIZE]]} (${run.words[row[ROUTE]]}): ${amount(row[DEVICE], "s")}, ${row[RATIO]} times CPU`));
      made.append(point);
    });
    return h("div", { class: "wide" }, made, h("p", { class: "legend quiet" }, ["native", "fallback", "composite"].map((route) => h("span", {}, h("i", { class: `key point ${route}` }), route))));
  }

  function table(run) {
    const word = (row, at) => run.words[row[at]];
    const head = ["", "overload", "size", "route", "a call", "attainable", "bound", "lost", "times CPU", "fallback copies"];
    const rows = run.rows.slice(0, 100);
    return h("div", { class: "wide" }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, head.map((c) => h("th", {}, c)))),
      h("tbody", {}, rows.map((r, i) => h("tr", { "data-walk": true }, h("td", {}, String(i + 1)), h("th", { scope: "row" }, h("code", {}, word(r, OVERLOAD))), h("td", {}, word(r, SIZE)), h("td", {}, word(r, ROUTE)),
        h("td", {}, amount(r[DEVICE], "s")), h("td", {}, amount(r[COULD], "s")), h("td", {}, word(r, BOUND)), h("td", {}, `${amount(r[LOST], "s")} (${report.percent(r[LOST], run.lost)})`), h("td", { title: `CPU: ${amount(r[CPU], "s")}` }, String(r[RATIO])), h("td", {}, r[COPIED] ? amount(r[COPIED], "B") : "–"))))));
  }
})();
