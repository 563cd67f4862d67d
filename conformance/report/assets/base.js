"use strict";
/* The page's ground: elements out of text alone, the parts of the data as they come, the address. */
const report = { views: {}, parts: new Map(), waiting: new Map() };

/* An element. Children are text or elements, never markup: nothing that results say is ever parsed as HTML. */
report.h = function (tag, attributes, ...children) {
  return report.fill(document.createElement(tag), attributes, children);
};

report.svg = function (tag, attributes, ...children) {
  return report.fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
};

report.fill = function (element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
};

/* Called by each file of data. */
report.take = function (name, data) {
  report.parts.set(name, data);
  for (const resolve of report.waiting.get(name) || []) resolve(data);
  report.waiting.delete(name);
};

/* A part of the data, loaded by a script element: a page opened from a file may not fetch. */
report.load = function (name) {
  if (report.parts.has(name)) return Promise.resolve(report.parts.get(name));
  return new Promise((resolve, reject) => {
    if (report.waiting.has(name)) return void report.waiting.get(name).push(resolve);
    report.waiting.set(name, [resolve]);
    const failed = () => {
      report.waiting.delete(name);
      reject(new Error(`data/${name}.js cannot be loaded; is the report's directory whole?`));
    };
    document.head.append(report.h("script", { src: `data/${name}.js`, onerror: failed }));
  });
};

/* The address: a view, what it is about, and its filters; all of it after the #. */
report.here = function () {
  const text = location.hash.replace(/^#\/?/, "");
  const cut = text.indexOf("?");
  const path = (cut < 0 ? text : text.slice(0, cut)).split("/");
  let about = "";
  try {
    about = decodeURIComponent(path.slice(1).join("/"));
  } catch {
    about = path.slice(1).join("/");
  }
  return { view: path[0] || "overview", about, query: new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1)) };
};

report.address = function (view, query, about) {
  const kept = Object.entries(query || {}).filter(([, v]) => v !== "" && v !== undefined && v !== null);
  const text = new URLSearchParams(kept.map(([k, v]) => [k, String(v)])).toString();
  return `#/${view}${about ? "/" + encodeURIComponent(about) : ""}${text ? "?" + text : ""}`;
};

/* Change filters in the address without a step in the history for each key typed. */
report.refine = function (change) {
  const { view, about, query } = report.here();
  for (const [name, value] of Object.entries(change)) value ? query.set(name, value) : query.delete(name);
  history.replaceState(null, "", report.address(view, Object.fromEntries(query), about));
};

report.number = (n) => (n === null || n === undefined ? "–" : Number(n).toLocaleString("en").replace(/,/g, "\u202f"));
report.percent = (part, whole) => {
  if (!whole) return "–";
  const share = (100 * part) / whole;
  return (part < whole && share > 99.9 ? "> 99.9" : share.toFixed(1)) + " %";
};
report.count = (n, one, many) => `${report.number(n)} ${n === 1 ? one : many || one + "s"}`;
report.seconds = function (s) {
  if (s === null || s === undefined) return "–";
  if (s < 60) return `${s.toFixed(1)} s`;
  const minutes = Math.floor(s / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(s % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
};

/* Only what leads to a page of the web is a link. */
report.outward = (link, text) =>
  /^https?:\/\//i.test(link) ? report.h("a", { href: link, rel: "noopener noreferrer" }, text || link) : text || link;

/* A command with a button that copies it; where the browser does not allow that, the button selects the text. */
report.command = function (text) {
  const select = () => getSelection().selectAllChildren(code);
  const button = report.h("button", { type: "button", class: "copy", onclick: () => {
    const done = () => (button.textContent = "copied");
    navigator.clipboard ? navigator.clipboard.writeText(text).then(done, select) : select();
  } }, "copy");
  const code = report.h("code", {}, text);
  return report.h("pre", { class: "command" }, code, button);
};
