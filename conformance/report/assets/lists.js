"use strict";
/* A list of any length: only the rows in sight are in the page. And the keys that walk along rows. */
report.lists = (function () {
  const { h } = report;

  /* A list of `count` rows of equal height; `row(i)` makes the link of one. Returns {element, redraw, select}. */
  function virtual({ count, row, label }) {
    const space = h("div", { class: "space" });
    const element = h("div", { class: "rows", role: "group", "aria-label": label }, space);
    let height = 0, from = -1, to = -1, selected = -1;
    function measure() {
      const probe = h("a", { class: "row" }, "\u00a0");
      space.append(probe);
      height = probe.getBoundingClientRect().height || 34;
      probe.remove();
      space.style.height = `${height * count()}px`;
    }
    function draw(force) {
      if (!height) measure();
      const top = element.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(-top / height) - 8);
      const last = Math.min(count(), first + Math.ceil(innerHeight / height) + 24);
      if (!force && first === from && last === to) return;
      [from, to] = [first, last];
      const made = document.createDocumentFragment();
      for (let i = first; i < last; i++) {
        const one = row(i);
        one.classList.add("row");
        one.style.top = `${i * height}px`;
        if (i === selected) one.classList.add("selected");
        made.append(one);
      }
      space.replaceChildren(made);
    }
    function redraw() {
      height = 0;
      selected = Math.min(selected, count() - 1);
      draw(true);
    }
    function select(step) {
      if (!count()) return;
      selected = Math.max(0, Math.min(count() - 1, selected + step));
      const at = element.getBoundingClientRect().top + scrollY + selected * height;
      if (at < scrollY + 120) scrollTo(0, at - 120);
      else if (at + height > scrollY + innerHeight - 16) scrollTo(0, at + height - innerHeight + 16);
      draw(true);
    }
    const onScroll = () => draw(false);
    addEventListener("scroll", onScroll, { passive: true });
    addEventListener("resize", redraw);
    const leave = () => {
      removeEventListener("scroll", onScroll);
      removeEventListener("resize", redraw);
    };
    const open = () => space.querySelector(".row.selected");
    return { element, redraw, select, leave, open };
  }

  /* The same keys for rows that are all in the page: anything with data-walk. */
  function plain(root) {
    let selected = -1;
    const rows = () => [...root.querySelectorAll("[data-walk]")];
    return {
      select(step) {
        const all = rows();
        if (!all.length) return;
        selected = Math.max(0, Math.min(all.length - 1, selected + step));
        all.forEach((row, i) => row.classList.toggle("selected", i === selected));
        all[selected].scrollIntoView({ block: "nearest" });
      },
      open: () => root.querySelector("[data-walk].selected"),
      leave() {},
    };
  }

  /* A long list a part at a time. */
  function more(items, make, first = 50) {
    const box = h("div", { class: "listed" });
    let at = 0;
    const button = h("button", { type: "button", onclick: () => add(500) });
    function add(count) {
      button.remove();
      items.slice(at, at + count).forEach((item) => box.append(make(item)));
      at += count;
      if (at >= items.length) return;
      button.textContent = `${report.number(items.length - at)} more`;
      box.append(button);
    }
    add(first);
    return box;
  }

  return { virtual, plain, more };
})();
