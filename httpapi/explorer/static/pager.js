// <table-pager> leads through the pages of a table.

import { h, icon, icons, setAttributes, setText } from "./dom.js";
import { count } from "./format.js";

const sizes = [25, 50, 100, 250];

// sizeOf is how many rows a page has: what is wanted, if that is one of the sizes.
export function sizeOf(wanted) {
  const n = Number(wanted);
  return sizes.includes(n) ? n : 50;
}

// TablePager tells by the events "turn", with the parameters of the place to go
// to, and "reload".
class TablePager extends HTMLElement {
  trail = [""]; // the cursors of the pages before, by their numbers

  connectedCallback() {
    const turn = (detail) => this.dispatchEvent(new CustomEvent("turn", { detail }));
    const first = { cursor: "", page: "" };
    this.limit = h(
      "select",
      { name: "limit", "aria-label": "Rows a page", change: () => turn({ limit: this.limit.value, ...first }) },
      sizes.map((n) => h("option", { value: n }, n)),
    );
    this.previous = h(
      "button",
      { "data-action": "previous", "aria-label": "The page before", click: () => turn(this.back()) },
      icon(icons.left),
    );
    this.next = h(
      "button",
      { "data-action": "next", "aria-label": "The next page", click: () => turn({ cursor: this.cursor, page: this.page + 1 }) },
      icon(icons.right),
    );
    this.where = h("span", { "data-field": "page" });
    this.other = h("span", { "data-field": "elsewhere", hidden: true });
    this.classList.add("pager");
    this.append(
      this.other,
      h(
        "button",
        { "data-action": "reload", class: "quiet", "aria-label": "Reload", click: () => this.dispatchEvent(new Event("reload")) },
        icon(icons.reload),
        h("span", { class: "wide" }, "Reload"),
      ),
      h("span", { class: "spread" }),
      h("label", {}, h("span", { class: "wide" }, "Rows "), this.limit),
      this.previous,
      this.where,
      this.next,
    );
  }

  // show shows the place that is shown. cursor is that of the next page, if there
  // is one.
  show(params, cursor) {
    this.page = Number(params.page) || 1;
    this.cursor = cursor;
    this.trail[this.page] = params.cursor ?? "";
    this.limit.value = sizeOf(params.limit);
    setText(this.where, "page " + count(this.page));
    this.previous.disabled = this.page === 1;
    this.next.disabled = !cursor;
  }

  // back is the place of the page before, or of the first one if nobody knows
  // any more where that one began.
  back() {
    const page = this.page - 1,
      cursor = this.trail[page];
    return page > 1 && cursor ? { cursor, page } : { cursor: "", page: "" };
  }

  // elsewhere says how many changes there were of entities that are not shown.
  elsewhere(n) {
    this.other.hidden = n === 0;
    setAttributes(this.other, { "data-count": n });
    setText(this.other, `${count(n)} ${n === 1 ? "change" : "changes"} elsewhere`);
  }
}

customElements.define("table-pager", TablePager);
