"use strict";
/* The cells of all lanes as typed arrays, decoded once from their strings, and what a filter finds in them. */
report.data = (function () {
  const FIRST = 48;
  const ABSENT = 255;

  const numbers = (text) => Uint16Array.from({ length: text.length }, (_, i) => text.charCodeAt(i) - FIRST);

  function table(site) {
    const t = site.table;
    const n = t.dtype.length;
    const made = { ...t, n, op: new Uint32Array(n), dtypeOf: numbers(t.dtype), layoutOf: numbers(t.layout) };
    let at = 0;
    t.counts.forEach((count, op) => {
      made.op.fill(op, at, at + count);
      at += count;
    });
    made.starts = [0];
    t.counts.forEach((count) => made.starts.push(made.starts[made.starts.length - 1] + count));
    return made;
  }

  function lane(part, n) {
    const width = part.routes.length;
    const status = new Uint8Array(n).fill(ABSENT);
    const route = new Uint8Array(n);
    for (let i = 0; i < n; i++) {
      const code = part.codes.charCodeAt(i) - FIRST - 1;
      if (code < 0) continue;
      status[i] = (code / width) | 0;
      route[i] = code % width;
    }
    const failing = new Int32Array(n).fill(-1);
    part.failing.cell.forEach((cell, row) => (failing[cell] = row));
    const change = new Int16Array(n).fill(-1);
    const changed = { ...part.changed };
    for (const name of ["change", "before", "after", "note"]) changed[name] = numbers(changed[name]);
    changed.cell.forEach((cell, row) => typeof cell === "number" && (change[cell] = changed.change[row]));
    const cause = new Int32Array(n).fill(-1);
    part.causes.forEach((one, row) => one.cells.forEach((cell) => (cause[cell] = row)));
    return { ...part, status, route, changed, failingRow: failing, changeOf: change, causeOf: cause, why: reasons(part, n) };
  }

  function reasons(part, n) {
    const why = new Uint16Array(n);
    let at = 0;
    part.whose.forEach((gap, i) => {
      at += gap;
      why[at] = part.why.charCodeAt(i) - FIRST;
    });
    return why;
  }

  /* The part of an id before the dtype. A scenario ("module:function") has neither dtype nor layout. */
  const start = (t, op) => {
    const [family, overload] = t.ops[op];
    const scenario = t.families[family] === "scenarios";
    return scenario ? `scenarios/${overload.replace(":", ".py::")}` : `ops/${t.families[family]}.py::${overload}[`;
  };
  const axes = (t, i) => (t.dtypes[t.dtypeOf[i]] ? `[${t.dtypes[t.dtypeOf[i]]}-${t.layouts[t.layoutOf[i]]}]` : "");
  const name = (t, i) => `${t.ops[t.op[i]][1]}${axes(t, i)}`;
  const id = (t, i) => start(t, t.op[i]).replace(/\[$/, "") + axes(t, i);

  /* The number of a cell by its id; -1 where no lane has it. A case's id is taken for its cell's. */
  function find(t, text) {
    const wanted = text.split("#")[0];
    for (let op = 0; op < t.ops.length; op++) {
      if (!wanted.startsWith(start(t, op))) continue;
      for (let i = t.starts[op]; i < t.starts[op + 1]; i++) if (id(t, i) === wanted) return i;
    }
    return -1;
  }

  /* Each word has to be in the cell's id, or in what its failure says. Looked up a table at a time, not a cell. */
  function words(t, text) {
    const dealt = (list, word) => Uint8Array.from(list, (entry) => (entry.toLowerCase().includes(word) ? 1 : 0));
    return text.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
      const whole = /[[\]-]|::/.test(word) || word.startsWith("ops/") || word.startsWith("scenarios/");
      const cut = word.split("#")[0];
      return {
        word: cut, whole,
        op: dealt(t.ops.map((_, op) => start(t, op)), whole ? cut.split("[")[0] : cut),
        dtype: dealt(t.dtypes, cut), layout: dealt(t.layouts, cut),
      };
    });
  }

  function wordHolds(t, w, i, lanes) {
    if (w.whole) {
      if (w.op[t.op[i]] && id(t, i).toLowerCase().includes(w.word)) return true;
    } else if (w.op[t.op[i]] || w.dtype[t.dtypeOf[i]] || w.layout[t.layoutOf[i]]) return true;
    return lanes.some((l) => {
      const row = l.failingRow[i];
      if (row < 0) return false;
      const f = l.failing;
      return f.excerpt[row].toLowerCase().includes(w.word) || f.kinds[f.kind[row]].toLowerCase().includes(w.word);
    });
  }

  /* The cells that a filter leaves, in order: those with a lane that has all that is asked of a lane. */
  function filter(t, lanes, f) {
    const asked = words(t, f.q || "");
    const chosen = f.lane ? lanes.filter((l) => l.name === f.lane) : lanes;
    const found = new Int32Array(t.n);
    const family = f.family ? t.families.indexOf(f.family) : -1;
    const overload = f.overload || "";
    const dtype = f.dtype ? t.dtypes.indexOf(f.dtype) : -1;
    const layout = f.layout ? t.layouts.indexOf(f.layout) : -1;
    const ops = t.ops.map(([of, name]) => (!f.family || of === family) && (!overload || name === overload));
    const holds = chosen.map((l) => laneFilter(l, f));
    let n = 0;
    for (let i = 0; i < t.n; i++) {
      if (!ops[t.op[i]]) continue;
      if (f.dtype && t.dtypeOf[i] !== dtype) continue;
      if (f.layout && t.layoutOf[i] !== layout) continue;
      if (!holds.some((test) => test(i))) continue;
      if (asked.length && !asked.every((w) => wordHolds(t, w, i, chosen))) continue;
      found[n++] = i;
    }
    return found.subarray(0, n);
  }

  function laneFilter(l, f) {
    const statuses = new Uint8Array(256);
    statuses.fill(f.status ? 0 : 1, 0, ABSENT);
    for (const s of (f.status || "").split(",")) if (s) statuses[report.site.statuses.findIndex((k) => k.name === s)] = 1;
    const route = f.route ? l.routes.indexOf(f.route) : -1;
    const change = f.change ? report.site.changes.indexOf(f.change) : -1;
    const kinds = f.check ? l.failing.kinds.map((k) => k === f.check || k.split(/[(), ]+/).includes(f.check)) : null;
    return (i) => {
      if (!statuses[l.status[i]]) return false;
      if (f.route && l.route[i] !== route) return false;
      if (f.change && l.changeOf[i] !== change) return false;
      const cause = l.causes[l.causeOf[i]];
      if (f.cause && (!cause || ![cause.name, cause.kernel].includes(f.cause))) return false;
      const row = l.failingRow[i];
      if (kinds && (row < 0 || !kinds[l.failing.kind[row]])) return false;
      return !f.known || (row >= 0 && (l.failing.rule[row] > 0) === (f.known === "known"));
    };
  }

  return { table, lane, name, axes, id, find, filter, ABSENT };
})();
