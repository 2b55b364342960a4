// <pod-list> shows the pods: what they are, how many entities they have, and how
// many of these change.

import { get, path } from "./api.js";
import { h, setAttributes, setText } from "./dom.js";
import { count, rate } from "./format.js";
import { enterable, firstRow, moveFocus } from "./keys.js";
import { poll } from "./poll.js";
import { isAbort, problemNote } from "./problem.js";
import { formatRoute, here, refine } from "./route.js";
import { Sparkline } from "./sparkline.js";

const period = 2000; // milliseconds between two looks
const share = 20; // counting takes at most one part in so many of the time
const most = 500; // rows

class PodList extends HTMLElement {
  rows = new Map(); // by name
  life = new AbortController();

  connectedCallback() {
    this.note = problemNote();
    this.filter = h("input", {
      type: "search",
      name: "find",
      placeholder: "Find a pod",
      "aria-label": "Find a pod",
      value: here().params.find ?? "",
      input: () => this.find(),
      keydown: (e) => e.key === "ArrowDown" && firstRow(this.body),
    });
    this.body = h("tbody", { keydown: (e) => moveFocus(e, this.body) });
    this.tiles = Object.fromEntries(
      [
        ["pods", "Pods"],
        ["entities", "Entities"],
        ["total-rate", "Changes a second"],
        ["letters", "Dead letters"],
      ].map(([name, text]) => [name, tile(name, text)]),
    );
    this.empty = h(
      "p",
      { class: "empty", hidden: true },
      "There are no pods yet. ",
      h("code", {}, "PUT /v1/pods/NAME"),
      " with ",
      h("code", {}, '{"type":"document"}'),
      " declares one.",
    );
    this.append(
      h("div", { class: "head" }, h("h1", {}, "Pods"), this.filter),
      this.note,
      h("div", { class: "tiles" }, Object.values(this.tiles)),
      h(
        "div",
        { class: "card scroll" },
        h(
          "table",
          { class: "pods" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              [
                "Pod",
                ["Type", "wide"],
                ["Entities", "number"],
                ["Changes/s", "number"],
                ["Last minutes", "wide"],
                ["Dead letters", "number wide"],
              ].map((c) => h("th", { scope: "col", class: [c].flat()[1] }, [c].flat()[0])),
            ),
          ),
          this.body,
        ),
        this.empty,
      ),
    );
    poll(period, this.life.signal, () => this.look());
  }

  disconnectedCallback() {
    this.life.abort();
  }

  show(route) {
    if (route.params.find !== undefined && this.filter && this.filter.value !== route.params.find) this.filter.value = route.params.find;
  }

  focusFilter() {
    this.filter.focus();
  }

  find() {
    refine({ find: this.filter.value });
    this.draw();
  }

  async look() {
    const begun = performance.now();
    try {
      this.take(await this.pods(), begun);
      this.note.show();
      this.dataset.state = "ready";
      this.counts();
    } catch (err) {
      if (isAbort(err)) return;
      if (err.code !== "unreachable") this.note.show(err); // which the status bar says
      if (this.dataset.state !== "ready") this.dataset.state = "failed";
    }
  }

  async pods() {
    const all = [];
    for (let cursor; all.length < most;) {
      const page = await get("v1/pods", { figures: true, limit: most, cursor }, { signal: this.life.signal });
      all.push(...page.items);
      if (!(cursor = page.next)) break;
    }
    return all.slice(0, most);
  }

  // take makes rates of what was counted now and before.
  take(pods, now) {
    const there = new Set(pods.map((p) => p.name));
    for (const name of this.rows.keys()) if (!there.has(name)) (this.rows.get(name).element.remove(), this.rows.delete(name));
    for (const pod of pods) {
      let row = this.rows.get(pod.name);
      if (!row) this.rows.set(pod.name, (row = new PodRow(pod.name)));
      row.take(pod, now);
    }
    this.draw();
  }

  draw() {
    const wanted = this.filter.value.toLowerCase(),
      all = [...this.rows.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    all.forEach((row, i) => {
      if (this.body.children[i] !== row.element) this.body.insertBefore(row.element, this.body.children[i] ?? null);
      row.element.hidden = !row.name.includes(wanted);
    });
    const sum = (of) => all.reduce((n, row) => n + (of(row) ?? 0), 0);
    this.tiles.pods.set(count(all.length));
    this.tiles.entities.set(all.every((r) => r.count !== undefined) ? count(sum((r) => r.count)) : "–");
    this.tiles["total-rate"].set(all.some((r) => r.rate !== undefined) ? rate(sum((r) => r.rate)) : "–");
    this.tiles.letters.set(count(sum((r) => r.pod.figures.deadLetters)));
    this.empty.hidden = all.length > 0;
    enterable(this.body);
  }

  // counts counts the entities of pods in which something has changed, two pods at
  // a time. It goes through all of a pod, so it is given a part of the time only.
  async counts() {
    const stale = [...this.rows.values()].filter((row) => row.stale() && !row.element.hidden);
    const some = async () => {
      for (let row; (row = stale.shift()); this.draw()) await this.countOne(row);
    };
    await Promise.all([some(), some()]);
  }

  async countOne(row) {
    const begun = performance.now(),
      changes = row.pod.figures.changes;
    row.until = Infinity;
    try {
      const page = await get(
        path`v1/pods/${row.name}/entities`,
        { count: true, limit: 1, select: "name", timeout: "60s" },
        { signal: this.life.signal },
      );
      row.counted(page.count, changes, share * (performance.now() - begun));
    } catch {
      row.until = performance.now() + 5 * period; // what is wrong, the list says as well
    }
  }
}

class PodRow {
  until = 0; // when it may be counted again

  constructor(name) {
    this.name = name;
    this.spark = new Sparkline();
    const cell = (field, cls) => h("td", { "data-field": field, class: cls });
    this.cells = {
      type: cell("type", "wide"),
      count: cell("count", "number"),
      rate: cell("rate", "number"),
      letters: cell("deadletters", "number wide"),
    };
    this.element = h(
      "tr",
      { "data-pod": name, tabindex: "-1" },
      h("th", { scope: "row", "data-field": "name" }, h("a", { href: formatRoute({ view: "pod", pod: name }) }, name)),
      this.cells.type,
      this.cells.count,
      this.cells.rate,
      h("td", { class: "wide" }, this.spark.element),
      this.cells.letters,
    );
  }

  take(pod, now) {
    if (this.pod && pod.figures.changes >= this.pod.figures.changes) {
      this.rate = ((pod.figures.changes - this.pod.figures.changes) * 1000) / (now - this.at);
      this.spark.add(this.rate);
    } else {
      this.countedAt = undefined; // new, or of a server that was started again
    }
    [this.pod, this.at] = [pod, now];
    const more = [pod.durability === "sync" ? "" : pod.durability, pod.readOnly ? "read only" : ""].filter(Boolean);
    this.cells.type.replaceChildren(h("span", { class: "tag" }, pod.type), ...more.map((m) => h("span", { class: "tag quiet" }, m)));
    setText(this.cells.rate, rate(this.rate));
    setAttributes(this.cells.rate, { "data-rate": this.rate ?? null });
    setText(this.cells.letters, count(pod.figures.deadLetters));
  }

  stale() {
    return this.pod.figures.changes !== this.countedAt && performance.now() >= this.until;
  }

  counted(n, changes, pause) {
    [this.count, this.countedAt, this.until] = [n, changes, performance.now() + pause];
    setText(this.cells.count, count(n));
    setAttributes(this.cells.count, { "data-count": n });
  }
}

function tile(name, text) {
  const value = h("strong", { "data-field": name }, "–");
  const made = h("div", { class: "tile" }, h("span", {}, text), value);
  made.set = (s) => setText(value, s);
  return made;
}

customElements.define("pod-list", PodList);
