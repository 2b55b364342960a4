// <entity-table> shows a pod's entities page by page: filtered, sorted, with the
// columns that are wanted, and marked as they change.

import "./changefeed.js";
import "./entitycount.js";
import "./filterfield.js";
import { sizeOf } from "./pager.js";
import { get, path } from "./api.js";
import { columnsOf, envelope, shownFirst } from "./columns.js";
import { pickColumns } from "./columnpicker.js";
import { headings } from "./headings.js";
import { h, icon, icons, perFrame, setAttributes, setText } from "./dom.js";
import { enterable, firstRow, moveFocus } from "./keys.js";
import { newEntity } from "./newentity.js";
import { patiently } from "./patience.js";
import { isAbort, problemNote } from "./problem.js";
import { formatRoute, go, refine } from "./route.js";
import { quarantinedRow, Row } from "./rows.js";
import { Stream } from "./stream.js";

const patience = "60s"; // an order may take a while to find

class EntityTable extends HTMLElement {
  rows = new Map(); // by name
  pending = new Map(); // what the stream has told of them since the last frame
  elsewhere = 0;

  connectedCallback() {
    this.head = h("tr");
    this.body = h("tbody", { keydown: (e) => moveFocus(e, this.body) });
    this.heading = h("h1");
    this.about = h("span", { class: "about" });
    this.number = document.createElement("entity-count");
    this.note = problemNote();
    this.filter = document.createElement("filter-field");
    this.filter.addEventListener("apply", (e) => this.filtered(e.detail));
    this.filter.addEventListener("leave", () => firstRow(this.body));
    this.feed = document.createElement("change-feed");
    this.pager = document.createElement("table-pager");
    this.pager.addEventListener("turn", (e) => this.turn(e.detail));
    this.pager.addEventListener("reload", () => this.load());
    const button = (action, text, sign, click) => h("button", { "data-action": action, click }, icon(icons[sign]), text);
    this.empty = h("p", { class: "empty" }, "Loading…");
    this.append(
      h(
        "div",
        { class: "head" },
        h("nav", { class: "crumbs", "aria-label": "Where this is" }, h("a", { href: formatRoute({ view: "pods" }) }, "Pods"), this.heading),
        this.about,
        this.number,
        h(
          "div",
          { class: "actions" },
          button("new", "New", "plus", () => newEntity(this.description)),
          button("columns", "Columns", "columns", () => this.choose()),
        ),
      ),
      this.filter,
      this.note,
      h(
        "div",
        { class: "beside" },
        h(
          "section",
          { class: "card", "aria-label": "Entities" },
          h("div", { class: "scroll" }, h("table", { class: "entities" }, h("thead", {}, this.head), this.body), this.empty),
          this.pager,
        ),
        h("aside", { class: "card" }, this.feed),
      ),
    );
    this.draw = perFrame(() => this.live());
  }

  disconnectedCallback() {
    this.stream?.stop();
    this.candidate?.stop();
    this.loading?.abort();
    clearTimeout(this.anyway);
  }

  focusFilter() {
    this.filter.input.focus();
    this.filter.input.select();
  }

  // show goes to a place in the pod. A new filter begins a new stream, which says
  // when to load; all else only loads.
  show(route) {
    this.pod = route.pod;
    this.params = route.params;
    this.dataset.pod = route.pod;
    setText(this.heading, route.pod);
    this.filter.set(route.params.filter ?? "");
    if (this.stream && (route.params.filter ?? "") === this.watched) this.load();
    else this.watch(route.params.filter ?? "");
  }

  // applied is the filter of what is shown.
  get applied() {
    return this.watched ?? this.params.filter ?? "";
  }

  size() {
    return sizeOf(this.params.limit);
  }

  filtered(filter) {
    refine({ filter, cursor: "", page: "" });
    this.params = { ...this.params, filter, cursor: "", page: "" };
    this.watch(filter);
  }

  // watch begins a stream, and keeps the one before until the new one is there,
  // since the filter may be one that cannot be used.
  watch(filter) {
    this.candidate?.stop();
    clearTimeout(this.anyway);
    const stream = (this.candidate = new Stream(
      path`v1/pods/${this.pod}/watch`,
      { filter },
      {
        opened: (fresh) => {
          if (stream === this.candidate) {
            this.stream?.stop();
            [this.stream, this.candidate, this.watched] = [stream, undefined, filter];
            if (filter === this.filter.value) this.filter.holds();
          }
          if (fresh) this.load();
        },
        on: (kind, data) => stream === this.stream && this.told(kind, data),
        lost: () => this.load(),
        failed: (problem) => {
          stream.stop();
          if (stream === this.candidate) this.candidate = undefined;
          if (filter && /filter|costly/.test(problem.code)) this.filter.fails(problem);
          else this.fail(problem);
          if (!this.loaded && filter) this.watch(""); // something is better than nothing
        },
      },
    ));
    stream.start();
    this.anyway = setTimeout(() => this.loading || this.load(), 2500); // the stream may have to wait
  }

  async load() {
    this.loading?.abort();
    const { signal } = (this.loading = new AbortController());
    this.setAttribute("aria-busy", "true");
    this.meanwhile = new Map(); // what is told while the page is read may be newer than it
    try {
      const filter = this.applied,
        read = () => this.read(filter, signal);
      this.fill(await patiently(read, signal, (err) => this.fail(err)), this.columns);
      this.number.show(this.pod, filter, signal);
      this.note.show();
      this.loaded = true;
      this.dataset.state = "ready";
    } catch (err) {
      if (isAbort(err)) return;
      this.fail(err);
    }
    this.setAttribute("aria-busy", "false");
  }

  async read(filter, signal) {
    if (!this.description) await this.describe(signal);
    const columns = (this.columns = this.chosen());
    return get(
      path`v1/pods/${this.pod}/entities`,
      {
        filter,
        sort: this.params.sort,
        limit: this.size(),
        timeout: patience,
        cursor: this.params.cursor,
        select: ["name", "life", "revision", ...columns].filter((c, i, all) => all.indexOf(c) === i).join(","),
      },
      { signal },
    );
  }

  fail(err) {
    if (err.code === "bad_query" && this.params.cursor) return this.turn({ cursor: "", page: "" }); // of another query, or another server
    if (this.filter.value && (err.code === "bad_filter" || err.code === "too_costly")) return this.filter.fails(err);
    this.note.show(err);
    if (this.loaded) return;
    this.dataset.state = "failed";
    this.empty.hidden = true;
  }

  async describe(signal) {
    const d = await get(path`v1/pods/${this.pod}`, {}, { signal });
    const schema = d.stateSchema ?? d.schema;
    let known = columnsOf(schema, []);
    if (known.length === 0) {
      const some = await get(path`v1/pods/${this.pod}/entities`, { limit: 10 }, { signal });
      known = columnsOf(
        undefined,
        some.items.map((i) => i.state),
      );
    }
    [this.description, this.known] = [d, known];
    this.about.replaceChildren(
      h("span", { class: "tag" }, d.type),
      d.durability === "sync" ? "" : h("span", { class: "tag quiet" }, d.durability),
      ...(d.readOnly ? [h("span", { class: "tag warn" }, "read only")] : []),
    );
  }

  chosen() {
    const wanted = (this.params.columns ?? "").split(/,(?![^[]*\])/).filter(Boolean);
    return wanted.length ? wanted : shownFirst(this.known);
  }

  async choose() {
    if (!this.description) return;
    const columns = await pickColumns([...this.known, ...envelope], this.columns);
    if (columns) this.turn({ columns: columns.join(",") });
  }

  fill(page, columns) {
    this.elsewhere = 0;
    this.pending.clear();
    this.rows.clear();
    for (const item of page.items) if (this.meanwhile.has(item.name)) this.pending.set(item.name, this.meanwhile.get(item.name));
    this.meanwhile = undefined;
    this.head.replaceChildren(...headings(columns, this.params.sort, (sort) => this.turn({ sort, cursor: "", page: "" })));
    for (const item of page.items) this.rows.set(item.name, new Row(this.pod, columns, item));
    const unreadable = (page.quarantined ?? []).map((q) => quarantinedRow(q, columns));
    for (const column of columns)
      this.head.querySelector(`[data-column="${CSS.escape(column)}"]`).classList.toggle("number", this.isNumbers(column));
    this.body.replaceChildren(...[...this.rows.values()].map((r) => r.element), ...unreadable);
    enterable(this.body);
    this.cursor = page.next;
    this.more();
    this.live();
  }

  // isNumbers reports whether a column's heading stands at the right.
  isNumbers(column) {
    const cells = [...this.rows.values()].map((r) => r.cell(column)).filter((c) => c.textContent);
    return cells.length > 0 && cells.every((c) => c.classList.contains("number"));
  }

  more() {
    this.pager.show(this.params, this.cursor);
    this.empty.hidden = this.body.children.length > 0;
    setText(
      this.empty,
      this.applied ? "No entity matches the filter." : "There are no entities yet. The first message to a name makes one.",
    );
  }

  turn(params) {
    go({ view: "pod", pod: this.pod, params: { ...this.params, ...params } });
  }

  told(kind, data) {
    this.feed.add(kind, data);
    if (kind === "gap") return;
    if (this.meanwhile) {
      this.meanwhile.delete(data.name); // the last ones are kept
      this.meanwhile.set(data.name, [kind, data]);
      if (this.meanwhile.size > 5000) this.meanwhile.delete(this.meanwhile.keys().next().value);
    }
    if (this.rows.has(data.name) || (kind === "changed" && this.isOpen())) this.pending.set(data.name, [kind, data]);
    else this.elsewhere++;
    this.draw();
  }

  // isOpen reports whether entities that are new can be shown behind the others.
  isOpen() {
    return this.loaded && !this.cursor && this.rows.size + this.pending.size < 2 * this.size();
  }

  live() {
    for (const [name, [kind, data]] of this.pending) {
      const row = this.rows.get(name);
      if (row) row.take(kind, data);
      else if (this.columns) this.add(data);
    }
    this.pending.clear();
    this.pager.elsewhere(this.elsewhere);
  }

  add(data) {
    const row = new Row(this.pod, this.columns, data);
    const behind = this.params.sort ? undefined : [...this.rows.values()].find((r) => r.name > row.name);
    this.rows.set(row.name, row);
    this.body.insertBefore(row.element, behind?.element ?? null);
    row.mark("changed");
    this.empty.hidden = true;
  }
}

customElements.define("entity-table", EntityTable);
