// <actor-tree> shows the tree of actors, how many messages wait for each, and
// what has failed. Branches are read when they are opened, page by page, and
// again every while as long as they are open.

import { get } from "./api.js";
import { h, setAttributes, setText } from "./dom.js";
import { count } from "./format.js";
import { poll } from "./poll.js";
import { isAbort, problemNote } from "./problem.js";
import { treeKeys } from "./tree.js";

const period = 2000; // milliseconds between two looks
const page = 100; // children that are read at a time
const opened = ["/", "/user", "/user/pods", "/system"]; // at first

class ActorTree extends HTMLElement {
  life = new AbortController();

  connectedCallback() {
    this.note = problemNote();
    this.tree = h("div", { role: "tree", "aria-label": "Actors", keydown: (e) => treeKeys(e, this.tree) });
    this.append(
      h(
        "div",
        { class: "head" },
        h("h1", {}, "Actors"),
        h("span", { class: "muted" }, "Messages that wait, and what has failed since the server's start"),
      ),
      this.note,
      h(
        "div",
        { class: "card actors" },
        h(
          "div",
          { class: "node titles muted", "aria-hidden": "true" },
          "Actor",
          h("span", { class: "spread" }),
          ["Failed", "Restarted", "Waiting"].map(title),
        ),
        this.tree,
      ),
    );
    this.root = new Branch({ path: "/", mailbox: 0, children: 1, restarts: 0, failures: 0 }, this.life.signal);
    this.root.element.tabIndex = 0;
    this.tree.append(this.root.element);
    poll(period, this.life.signal, () => this.look());
  }

  disconnectedCallback() {
    this.life.abort();
  }

  show() {}

  async look() {
    try {
      this.root.opened ??= true;
      await this.root.look();
      this.note.show();
      this.dataset.state = "ready";
    } catch (err) {
      if (isAbort(err)) return;
      if (err.code !== "unreachable") this.note.show(err);
    }
  }
}

function title(text) {
  return h("span", { class: "number" }, text);
}

// Branch is one actor, with those below it once it was opened.
class Branch {
  inner = new Map(); // by path
  wanted = page;

  constructor(line, signal) {
    this.path = line.path;
    this.signal = signal;
    const field = (name, cls, title) => h("span", { "data-field": name, class: cls, title });
    this.fields = {
      children: field("children", "muted", "actors below it"),
      mailbox: field("mailbox", "number", "messages that wait for it"),
      failures: field("failures", "number", "failures"),
      restarts: field("restarts", "number", "restarts"),
    };
    this.twist = h("button", {
      "data-action": "toggle",
      class: "twist",
      tabindex: "-1",
      "aria-hidden": "true",
      click: () => this.open(!this.opened),
    });
    this.group = h("div", { role: "group", class: "group" });
    this.more = h("button", { "data-action": "more", class: "quiet", click: () => this.longer() });
    this.element = h(
      "div",
      { role: "treeitem", tabindex: "-1", "data-path": this.path },
      h(
        "div",
        { class: "node" },
        this.twist,
        h("span", { class: "key", dir: "auto" }, nameOf(this.path)),
        this.fields.children,
        h("span", { class: "spread" }),
        this.fields.failures,
        this.fields.restarts,
        this.fields.mailbox,
      ),
      this.group,
    );
    this.element.open = (open) => this.open(open);
    this.take(line);
    if (opened.includes(this.path)) this.opened = true;
  }

  take(line) {
    this.children = line.children;
    setText(this.fields.children, line.children ? count(line.children) : "");
    setText(this.fields.mailbox, count(line.mailbox));
    setAttributes(this.fields.mailbox, { "data-mailbox": line.mailbox, class: "number" + (line.mailbox > 0 ? " busy" : " muted") });
    for (const name of ["failures", "restarts"]) {
      setText(this.fields[name], line[name] ? count(line[name]) : "–");
      setAttributes(this.fields[name], { class: line[name] ? "number warn" : "number muted" });
    }
    setAttributes(this.element, {
      "aria-expanded": line.children ? String(Boolean(this.opened)) : null,
      "data-stopping": line.stopping ? "true" : null,
    });
  }

  open(open) {
    this.opened = open;
    setAttributes(this.element, { "aria-expanded": this.children ? String(open) : null });
    this.group.hidden = !open;
    if (open) this.look().catch(() => {}); // the next look says what is wrong
  }

  longer() {
    this.wanted += 5 * page;
    this.look().catch(() => {});
  }

  // look reads the actor with its children, and goes on to those that are open.
  async look() {
    if (!this.opened || this.looking) return;
    this.looking = true;
    try {
      await this.read();
      for (const branch of this.inner.values()) if (branch.opened) await branch.look();
    } finally {
      this.looking = false;
    }
  }

  async read() {
    const lines = [];
    let cursor;
    do {
      const got = await get(
        "v1/actors",
        { path: this.path, depth: 1, limit: Math.min(1000, this.wanted + 1 - lines.length), cursor },
        { signal: this.signal },
      );
      lines.push(...got.items);
      cursor = got.next;
    } while (cursor && lines.length <= this.wanted);
    if (lines[0]?.path === this.path) this.take(lines.shift());
    const there = new Set(lines.map((l) => l.path));
    for (const [path, branch] of this.inner) if (!there.has(path)) (branch.element.remove(), this.inner.delete(path));
    lines.forEach((line, i) => {
      let branch = this.inner.get(line.path);
      if (branch) branch.take(line);
      else this.inner.set(line.path, (branch = new Branch(line, this.signal)));
      if (this.group.children[i] !== branch.element) this.group.insertBefore(branch.element, this.group.children[i] ?? null);
    });
    if (cursor) {
      setText(this.more, `${count(this.children - lines.length)} more`);
      this.group.append(this.more);
    } else this.more.remove();
  }
}

// nameOf is the last name of a path, decoded as paths encode it.
function nameOf(path) {
  return path === "/"
    ? "/"
    : path
        .slice(path.lastIndexOf("/") + 1)
        .replaceAll("%2F", "/")
        .replaceAll("%2A", "*")
        .replaceAll("%25", "%");
}

customElements.define("actor-tree", ActorTree);
