"use strict";
/* What a search of bisect came to for a case: the conclusion, both sides, every step, the script. */
report.bisected = function (search, found) {
  const { h } = report;
  const side = (word, name, output) => (name ? [h("h3", {}, `${word}: ${name}`), h("pre", { class: "message" }, output || "")] : []);
  return h("div", { class: "bisect" }, h("p", {}, h("b", {}, found.text)), h("p", { class: "case" }, h("code", {}, found.case)),
    found.signature ? h("p", { class: "quiet" }, found.signature.text) : null,
    side("Before", found.before, found.output_before), side("After", found.after, found.output_after),
    h("div", { class: "wide" }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["#", "point", "failed / runs", "says", "s"].map((c) => h("th", {}, c)))),
      h("tbody", {}, found.steps.map((s) => h("tr", {}, h("td", {}, String(s.number)), h("td", {}, s.point, " ", h("span", { class: "quiet" }, [s.title, s.date].filter(Boolean).join(", "))), h("td", {}, `${s.failed} / ${s.failed + s.passed}`), h("td", {}, [s.answer, s.unusable || s.another].filter(Boolean).join(": ")), h("td", {}, s.seconds.toFixed(1))))))),
    found.minimal ? h("details", {}, h("summary", {}, "A script that shows it"), h("pre", { class: "message" }, found.minimal)) : null,
    h("pre", { class: "command" }, h("code", {}, search.command)));
};
