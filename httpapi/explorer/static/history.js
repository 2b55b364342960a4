// <entity-history> shows an entity's changes, newest first: what each was, what
// it made different, and the numbers of the states as charts.

import "./chart.js";
import { get } from "./api.js";
import { diff } from "./diff.js";
import { h, perFrame, setAttributes, setText } from "./dom.js";
import { ago, brief, count, kindOf, time } from "./format.js";
import { stringify } from "./json.js";
import { patiently } from "./patience.js";
import { isAbort, problemNote } from "./problem.js";
import { here, refine } from "./route.js";
import { seriesOf } from "./series.js";

const sizes = [25, 50, 100, 250];
const kept = 500; // changes that are shown when they come live
const charts = 6; // that are shown at first
const most = 20; // requests for a page
const places = 12; // of a diff that are shown at first

class EntityHistory extends HTMLElement {
  life = new AbortController();
  items = []; // newest first; the last one may be there for its diff only
  charted = new Map(); // by path
  early = []; // what is told while a page is being read

  connectedCallback() {
    this.note = problemNote();
    this.list = h("ol", { class: "changes", "aria-label": "Changes, newest first" });
    this.drawings = h("div", { class: "charts" });
    const button = (action, text, click) => h("button", { "data-action": action, click }, text);
    this.newer = button("newer", "Newer", () => this.turn(this.trail?.pop() ?? 0));
    this.older = button("older", "Older", () => this.turnOlder());
    this.size = h(
      "select",
      { name: "limit", "aria-label": "Changes a page", change: () => this.resize() },
      sizes.map((n) => h("option", { value: n }, n)),
    );
    this.by = h(
      "select",
      { name: "by", "aria-label": "What charts are over", change: () => this.plot() },
      h("option", { value: "" }, "as it fits"),
      h("option", { value: "time" }, "over time"),
      h("option", { value: "revision" }, "over revisions"),
    );
    this.which = h("span", { class: "muted", "data-field": "range" });
    this.kept = h("p", { class: "notice", hidden: true });
    this.numbers = h(
      "div",
      { class: "card padded", hidden: true },
      h("div", { class: "card-head" }, h("h2", {}, "Numbers"), h("span", { class: "spread" }), this.by),
      this.drawings,
    );
    this.append(
      this.note,
      this.numbers,
      h(
        "div",
        { class: "card padded" },
        h("div", { class: "card-head" }, h("h2", {}, "Changes"), this.which),
        this.kept,
        this.list,
        h("div", { class: "pager" }, h("span", { class: "spread" }), h("label", {}, "Changes ", this.size), this.newer, this.older),
      ),
    );
    this.size.value = here().params.limit ?? 50;
    if (!this.size.value) this.size.value = 50;
    this.draw = perFrame(() => this.show());
  }

  disconnectedCallback() {
    this.life.abort();
    this.loading?.abort();
  }

  // loaded reads the newest page again: the entity was read anew.
  loaded() {
    this.turn(0);
  }

  // changed puts a change that was just told on top, if the newest page is shown.
  changed({ data, kind }) {
    if (this.loading) return void this.early.push({ data, kind });
    if (this.to) return;
    const top = this.items[0];
    if (top && (data.life < top.life || (data.life === top.life && data.revision <= top.revision))) return;
    this.items.unshift({ ...data, deleted: kind === "deleted", fresh: true });
    this.items.length = Math.min(this.items.length, kept + 1);
    this.draw();
  }

  resize() {
    refine({ limit: this.size.value });
    this.turn(this.to ?? 0);
  }

  turnOlder() {
    const oldest = this.shown.at(-1);
    (this.trail ??= []).push(this.to ?? 0);
    this.turn(oldest.revision - 1);
  }

  // turn reads the page that ends with a revision, or with 0 the newest. One more
  // change is read, since the oldest is compared with it.
  async turn(to) {
    this.loading?.abort();
    const { signal } = (this.loading = new AbortController());
    this.to = to;
    const size = Number(this.size.value),
      last = to || this.twin.revision || 0;
    try {
      const [page, all] = await patiently(() => this.read(last, to, size, signal), signal, (err) => this.note.show(err));
      this.items = all.reverse();
      this.extra = this.items.length > size ? 1 : 0;
      this.about = page;
      this.note.show();
    } catch (err) {
      if (isAbort(err)) return;
      if (err.code !== "no_such_entity") this.note.show(err);
      this.items = [];
    }
    this.loading = undefined;
    const early = this.early.splice(0);
    for (const change of early) this.changed(change);
    this.show();
  }

  // read reads the changes of a page, oldest first, and the one before. Of an
  // entity that is no more the last ones of all its lives are read.
  async read(last, to, size, signal) {
    const query = this.twin.exists ? { from: Math.max(1, last - size), to: to || undefined } : { earlier: true };
    let page,
      all = [];
    for (let i = 0; i < most && (i === 0 || page.next); i++) {
      page = await get(this.twin.path + "/history", { ...query, limit: 1000, cursor: page?.next }, { signal });
      all = all.concat(page.items).slice(-size - 1);
    }
    return [page, all];
  }

  show() {
    const shown = (this.shown = this.extra ? this.items.slice(0, -1) : this.items);
    const lines = shown.map((item, i) => (item.line ??= this.line(item, this.items[i + 1])));
    lines.forEach((line, i) => this.list.children[i] !== line && this.list.insertBefore(line, this.list.children[i] ?? null));
    while (this.list.children.length > lines.length) this.list.lastChild.remove();
    const newest = shown[0],
      oldest = shown.at(-1);
    setText(
      this.which,
      !newest
        ? "There are none."
        : newest === oldest
          ? `revision ${count(newest.revision)}`
          : `revisions ${count(oldest.revision)} to ${count(newest.revision)}`,
    );
    this.newer.disabled = !this.to;
    this.older.disabled = !oldest || oldest.revision <= 1 || !this.twin.exists || oldest.revision <= (this.about?.oldest?.revision ?? 0);
    this.kept.hidden = !this.about?.dropped;
    if (this.about?.dropped)
      setText(
        this.kept,
        this.about.oldest
          ? `The history keeps this life from revision ${count(this.about.oldest.revision)} on, of ${time(this.about.oldest.changed)}.`
          : "The history keeps nothing of this life any more.",
      );
    this.plot();
  }

  line(item, before) {
    const same = before && before.life === item.life ? before : undefined;
    const changes = item.deleted || item.unreadable ? [] : same || item.revision === 1 ? diff(same?.state ?? {}, item.state ?? {}) : [];
    const whole = h("pre", { "data-field": "revision-state", hidden: true, tabindex: "0" });
    const open = h(
      "button",
      {
        "data-action": "revision",
        class: "quiet",
        "aria-expanded": "false",
        click: () => {
          whole.hidden = !whole.hidden;
          if (!whole.hidden)
            setText(
              whole,
              item.deleted
                ? "It was deleted."
                : (item.unreadable ?? stringify(item.event === undefined ? item.state : { event: item.event, state: item.state }, "  ")),
            );
          setAttributes(open, { "aria-expanded": String(!whole.hidden) });
        },
      },
      "r" + count(item.revision),
    );
    const rest = changes.slice(places);
    const list = h("ul", { class: "diff" }, changes.slice(0, places).map(difference));
    if (rest.length > 0) {
      const more = h(
        "li",
        {},
        h("button", { class: "quiet", click: () => more.replaceWith(...rest.map(difference)) }, `${count(rest.length)} more places`),
      );
      list.append(more);
    }
    const none = item.deleted
      ? h("span", { class: "tag warn" }, "the life ended")
      : item.unreadable
        ? h("span", { class: "tag warn" }, item.unreadable)
        : !same && item.revision > 1
          ? h("span", { class: "muted" }, "what was before is not kept")
          : changes.length === 0
            ? h("span", { class: "muted" }, "an empty state")
            : null;
    return h(
      "li",
      {
        "data-revision": item.revision,
        "data-life": item.life,
        "data-type": item.type,
        "data-position": item.position ?? null,
        class: item.fresh ? "fresh" : null,
      },
      h(
        "div",
        { class: "change-head" },
        open,
        h("span", { class: "tag" }, item.type),
        h("time", { class: "muted", datetime: item.changed, title: time(item.changed) }, ago(item.changed)),
      ),
      none,
      list,
      whole,
    );
  }

  // plot shows a chart for each number. One that was there goes on.
  plot() {
    const series = seriesOf([...this.shown].reverse());
    const by = this.by.value || (isSpread(this.shown) ? "time" : "revision");
    this.numbers.hidden = series.size === 0;
    for (const [path, chart] of this.charted) if (!series.has(path)) (chart.remove(), this.charted.delete(path));
    for (const [path, points] of [...series].sort(([, a], [, b]) => isFlat(a) - isFlat(b))) {
      let chart = this.charted.get(path);
      if (!chart && this.charted.size >= charts && !this.all) continue;
      if (!chart) {
        this.charted.set(path, (chart = document.createElement("number-chart")));
        this.drawings.append(chart);
      }
      chart.show(path, points, by);
    }
    this.more?.remove();
    if (series.size <= charts || this.all) return;
    this.more = h("button", { click: () => ((this.all = true), this.plot()) }, `${series.size - charts} more numbers`);
    this.drawings.append(this.more);
  }
}

// isFlat reports whether a number did not change: such ones are shown last.
function isFlat(points) {
  return points.every((p) => p.value === points[0].value);
}

// isSpread reports whether changes can be told apart over time: it is not that
// most came in a moment, and a few long before or after.
function isSpread(items) {
  const times = items.map((i) => Date.parse(i.changed)),
    gaps = times.slice(1).map((t, i) => times[i] - t);
  const span = times[0] - times.at(-1);
  return span >= 20_000 && (items.length < 4 || Math.max(...gaps) < 0.4 * span);
}

function difference({ pointer, kind, before, after }) {
  const value = (v) => h("span", { class: "value kind-" + kindOf(v) }, brief(v, 160));
  return h(
    "li",
    { "data-diff": kind, "data-pointer": pointer },
    h("span", { class: "sign", "aria-label": kind }, { added: "+", removed: "−", changed: "~" }[kind]),
    h("code", { dir: "auto" }, pointer || "the whole"),
    kind === "added" ? null : h("del", {}, value(before)),
    kind === "changed" ? h("span", { class: "arrow", "aria-hidden": "true" }, "→") : null,
    kind === "removed" ? null : h("ins", {}, value(after)),
  );
}

customElements.define("entity-history", EntityHistory);
