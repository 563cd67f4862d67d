"use strict";
/* The frame: head and tabs, keys, light and dark, and which view the address asks for. */
(function () {
  const { h } = report;
  const TABS = [["overview", "Overview"], ["causes", "Causes"], ["new", "New"], ["map", "Map"], ["cells", "Cells"], ["coverage", "Coverage"], ["kill-rate", "Kill rate"], ["flaky", "Flaky"], ["speed", "Speed"]];
  const KEYS = [["/", "search"], ["j  k", "next, previous row"], ["Enter", "open the row"], ["Esc", "leave the search; back"], ["1 – 9", "the tabs"], ["t", "light or dark"], ["?", "these keys"]];
  const main = document.getElementById("main"), help = document.getElementById("help");
  let drawn = 0;

  report.site = report.parts.get("site");
  report.whenLanes = function () {
    if (!report.loading) {
      report.loading = Promise.all(report.site.lanes.map((_, n) => report.load(`lane-${n}`))).then((parts) => {
        report.lanes = parts.map((part, n) => ({ name: report.site.lanes[n].name, ...report.data.lane(part, report.table.n) }));
      });
    }
    return report.loading;
  };

  function head() {
    const search = h("input", { type: "search", id: "search", placeholder: "Search   /", "aria-label": "Search the cells", autocomplete: "off", spellcheck: "false", onkeydown: (e) => {
      if (e.key === "Enter") location.hash = report.address("cells", { q: e.target.value.trim() });
    } });
    document.getElementById("top").append(
      h("nav", { "aria-label": "Views" }, TABS.map(([view, title]) => h("a", { href: report.address(view), "data-view": view }, title))), search,
      h("button", { type: "button", id: "theme", title: "light or dark (t)", "aria-label": "Light or dark", onclick: theme }, "◐"),
      h("button", { type: "button", title: "keys (?)", "aria-label": "Keys", onclick: () => help.showModal() }, "?"));
    help.append(h("h2", {}, "Keys"), h("dl", {}, KEYS.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)))),
      h("form", { method: "dialog" }, h("button", {}, "Close")));
  }

  function kept(value) {
    try {
      if (value) localStorage.setItem("theme", value);
      return localStorage.getItem("theme");
    } catch {
      return null; // a browser may keep nothing for pages opened from files
    }
  }

  function theme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    kept(root.dataset.theme);
  }

  async function show() {
    const { view } = report.here(), turn = ++drawn;
    if (report.walk) report.walk.leave();
    report.walk = report.searched = null;
    const root = h("div", { class: `view ${view}` });
    main.replaceChildren(...notes(), root);
    document.querySelectorAll("[data-view]").forEach((a) => a.toggleAttribute("aria-current", a.dataset.view === view));
    const tab = document.querySelector(`header nav [aria-current]`);
    if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 60;
    document.title = `${(TABS.find(([name]) => name === view) || [, "Cell"])[1]} · ${report.site.backends.join(", ")} op conformance`;
    scrollTo(0, 0);
    const draw = report.views[view];
    try {
      if (draw) await draw(root);
      else root.append(h("h1", {}, "No such page"), h("p", {}, h("a", { href: report.address("overview") }, "To the overview")));
    } catch (e) {
      root.append(h("p", { class: "alarm" }, String(e.message || e)));
    }
    if (turn === drawn && !report.walk) report.walk = report.lists.plain(root);
    if (turn === drawn) document.documentElement.dataset.drawn = location.hash || "#/";
  }

  const notes = () => (report.site.left_out.length ? [h("div", { class: "alarm", role: "alert" }, h("b", {}, "Left out: "), report.site.left_out.map((line) => h("p", {}, line)))] : []);

  function keys(e) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
    if (e.key === "Escape" && typing) return void e.target.blur();
    if (typing || e.ctrlKey || e.metaKey || e.altKey || help.open) return;
    const to = { "/": () => (document.getElementById("q") || document.getElementById("search")).focus(), "?": () => help.showModal(), t: theme,
      j: () => step(1), k: () => step(-1), Enter: () => open(e), Escape: () => (report.here().view === "overview" ? null : history.length > 1 ? history.back() : (location.hash = "#/overview")) }[e.key];
    const tab = /^[1-9]$/.test(e.key) && TABS[Number(e.key) - 1];
    if (to) to();
    else if (tab) location.hash = report.address(tab[0]);
    else return;
    if (e.key === "/") e.preventDefault();
  }

  /* On a cell's page the rows are the cells of the list that it was opened from. */
  function step(by) {
    const link = report.here().view === "cell" && document.getElementById(by > 0 ? "next" : "previous");
    if (link) link.click();
    else if (report.walk) report.walk.select(by);
  }

  function open(e) {
    const row = report.walk && report.walk.open();
    const link = row && (row.href ? row : row.querySelector("a"));
    if (!link || e.target.tagName === "A" || e.target.tagName === "BUTTON") return;
    e.preventDefault();
    link.click();
  }

  if (!report.site) return void main.append(h("p", { class: "alarm" }, "data/site.js cannot be loaded; is the report's directory whole?"));
  const remembered = kept();
  if (remembered === "dark" || remembered === "light") document.documentElement.dataset.theme = remembered;
  report.table = report.data.table(report.site);
  head();
  addEventListener("hashchange", show);
  addEventListener("keydown", keys);
  show().then(() => (report.firstRender = performance.now()));
})();
