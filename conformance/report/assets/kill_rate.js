"use strict";
/* The kill-rate: of the planted faults how many each lane finds, and which none does. */
(function () {
  const { h, draw } = report;

  report.views["kill-rate"] = function (root) {
    const k = report.site.kill_rate;
    root.append(h("h1", {}, "Kill rate"));
    if (!k.faults) return void root.append(h("p", {}, "Not measured: these results hold no kill-rate/summary.json."));
    report.fill(root, {}, [h("p", { class: "quiet" }, `Of ${report.number(k.faults)} faults planted in the backend, how many are found; torch ${k.torch}, measured in ${report.seconds(k.seconds)}.`),
      h("div", { class: "cards" }, card("Killed", `${k.killed} of ${k.faults}`, report.percent(k.killed, k.faults), k.killed === k.faults), card("Survivors", (k.survivors || []).length, "found by no lane", !(k.survivors || []).length), card("False alarms", k.false_alarms, "failures with no fault planted", !k.false_alarms)),
      h("h2", {}, "Lanes"), totals(k.lanes, k.detail),
      Object.keys(k.peer_totals || {}).length ? [h("h2", {}, "Checks of others"), totals(k.peer_totals, k.detail)] : null,
      survivors(k.survivors || []), detail(k)]);
  };

  const card = (title, figure, said, good) => h("div", { class: `card ${good ? "good" : "bad"}` }, h("span", { class: "title" }, title), h("span", { class: "figure" }, String(figure)), h("span", { class: "quiet" }, said));

  const tried = (detail, name) => Object.values(detail || {}).filter((by) => by[name]).length;

  const totals = (rows, detail) => h("div", { class: "wide" }, h("table", { class: "plain cover" }, h("thead", {}, h("tr", {}, ["", "killed", "false alarms", "cells tried", "CPU"].map((c) => h("th", {}, c)))),
    h("tbody", {}, Object.entries(rows).map(([name, t]) => [name, t, tried(detail, name)]).map(([name, t, of]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, draw.share(t.killed, of), h("span", {}, `${t.killed} of ${of}`), h("span", { class: "quiet" }, ` ${report.percent(t.killed, of)}`)), h("td", {}, String(t.false_alarms)), h("td", {}, report.number(t.tried)), h("td", {}, report.seconds(t.cpu_s)))))));

  const survivors = (all) => all.length ? [h("h2", {}, "Survivors"), h("div", { class: "listed" }, all.map((s) => h("div", { class: "item" }, h("code", {}, s.fault), h("span", {}, s.why || "no reason given"), h("span", { class: "quiet" }, s.found_by_own_tests ? `found by ${s.found_by_own_tests}` : ""))))] : null;

  function detail(k) {
    const names = [...Object.keys(k.lanes), ...Object.keys(k.peer_totals || {})], rows = Object.entries(k.detail || {});
    if (!rows.length) return null;
    return h("details", {}, h("summary", {}, "Every fault"), h("div", { class: "wide" }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["fault", ...names].map((c) => h("th", {}, c)))),
      h("tbody", {}, rows.map(([fault, by]) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, fault)), names.map((n) => h("td", { title: by[n] ? by[n].where : "not tried" }, by[n] ? by[n].killed_by || "survives" : "–"))))))));
  }
})();
