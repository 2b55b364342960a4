// <entity-view> shows one entity: its live state, its history, and messages to
// it.

import "./history.js";
import "./messages.js";
import "./stateeditor.js";
import "./statetree.js";
import { get, path, request } from "./api.js";
import { confirm } from "./dialog.js";
import { h, icon, icons, perFrame, setAttributes, setText } from "./dom.js";
import { ago, count, time, visible } from "./format.js";
import { patiently } from "./patience.js";
import { isAbort, problemNote } from "./problem.js";
import { formatRoute, go, here } from "./route.js";
import { Twin } from "./twin.js";

const tabs = [
  ["state", "State"],
  ["history", "History"],
  ["messages", "Messages"],
];

class EntityView extends HTMLElement {
  connectedCallback() {
    const route = here();
    this.twin = new Twin(route.pod, route.name);
    Object.assign(this.dataset, { pod: route.pod, name: route.name });
    this.note = problemNote();
    this.fields = Object.fromEntries(["revision", "life", "changed"].map((name) => [name, h("span", { "data-field": name })]));
    this.gone = h("p", { class: "notice", hidden: true });
    this.delete = h(
      "button",
      { "data-action": "delete", class: "danger quiet", hidden: true, click: () => this.askToDelete() },
      icon(icons.trash),
      "Delete",
    );
    this.links = tabs.map(([tab, text]) =>
      h(
        "a",
        {
          role: "tab",
          id: "tab-" + tab,
          "data-tab-link": tab,
          "aria-controls": "panel",
          href: formatRoute({ view: "entity", pod: route.pod, name: route.name, tab }),
        },
        text,
      ),
    );
    this.panel = h("section", { id: "panel", role: "tabpanel", tabindex: "-1" });
    this.append(
      h(
        "div",
        { class: "head" },
        h(
          "nav",
          { class: "crumbs", "aria-label": "Where this is" },
          h("a", { href: formatRoute({ view: "pods" }) }, "Pods"),
          h("a", { href: formatRoute({ view: "pod", pod: route.pod }) }, route.pod),
          h("h1", { dir: "auto" }, visible(route.name)),
        ),
        h("div", { class: "actions" }, this.delete),
      ),
      h(
        "p",
        { class: "facts" },
        h("span", {}, "Revision ", this.fields.revision),
        h("span", {}, "Life ", this.fields.life),
        h("span", {}, "Changed ", this.fields.changed),
      ),
      this.gone,
      this.note,
      h("div", { class: "tabs", role: "tablist", "aria-label": "Parts of the entity", keydown: (e) => this.tabKey(e) }, this.links),
      this.panel,
    );
    this.parts = {};
    this.draw = perFrame(() => this.head());
    this.twin.addEventListener("load", () => this.loaded());
    this.twin.addEventListener("change", (e) => this.changed(e.detail));
    this.twin.addEventListener("fail", (e) => this.fail(e.detail));
    this.ticking = setInterval(this.draw, 5000);
    this.describe();
    this.twin.start();
  }

  disconnectedCallback() {
    this.twin.stop();
    this.life.abort();
    clearInterval(this.ticking);
  }

  life = new AbortController();

  async describe() {
    const { signal } = this.life,
      read = () => get(path`v1/pods/${this.twin.pod}`, {}, { signal });
    try {
      this.description = await patiently(read, signal, (err) => this.fail(err));
      if (this.twin.exists !== undefined) this.note.show();
      for (const part of Object.values(this.parts)) part.describe?.(this.description);
    } catch (err) {
      if (!isAbort(err)) this.fail(err);
    }
  }

  // show goes to a tab.
  show(route) {
    this.dataset.tab = route.tab;
    for (const link of this.links)
      setAttributes(link, {
        "aria-selected": String(link.dataset.tabLink === route.tab),
        tabindex: link.dataset.tabLink === route.tab ? "0" : "-1",
      });
    setAttributes(this.panel, { "aria-labelledby": "tab-" + route.tab });
    this.parts[route.tab] ??= this.make(route.tab);
    for (const [tab, part] of Object.entries(this.parts)) part.hidden = tab !== route.tab;
    this.parts[route.tab].shown?.();
  }

  make(tab) {
    const part = document.createElement({ state: "state-panel", history: "entity-history", messages: "entity-messages" }[tab]);
    part.twin = this.twin;
    this.panel.append(part);
    if (this.description) part.describe?.(this.description);
    if (this.twin.exists !== undefined) part.loaded?.();
    return part;
  }

  focusFilter() {
    this.panel.querySelector("select, textarea, input, button, [tabindex='0']")?.focus();
  }

  tabKey(event) {
    const now = this.links.indexOf(event.target),
      to = { ArrowRight: now + 1, ArrowLeft: now - 1 }[event.key];
    if (to === undefined) return;
    const link = this.links.at(to % this.links.length);
    link.click();
    link.focus();
    event.preventDefault();
  }

  loaded() {
    this.note.show();
    this.dataset.state = "ready";
    this.head();
    for (const part of Object.values(this.parts)) part.loaded?.();
  }

  changed(change) {
    this.draw();
    for (const part of Object.values(this.parts)) part.changed?.(change);
  }

  head() {
    const { twin } = this;
    setAttributes(this, {
      "data-exists": twin.exists === undefined ? null : String(twin.exists),
      "data-revision": twin.revision ?? null,
      "data-life": twin.life ?? null,
      "data-seen": twin.seen,
      "data-missed": twin.missed,
    });
    setText(this.fields.revision, twin.exists ? count(twin.revision) : "–");
    setText(this.fields.life, twin.exists ? String(twin.life) : "–");
    setText(this.fields.changed, twin.exists ? ago(twin.changed) : "–");
    setAttributes(this.fields.changed, { title: twin.changed ? time(twin.changed) : null });
    this.gone.hidden = twin.exists !== false;
    setText(
      this.gone,
      twin.life
        ? "It was deleted. A message that creates begins a new life."
        : "There is no such entity. A message that creates one makes it.",
    );
    this.delete.hidden = !twin.exists;
  }

  fail(err) {
    this.note.show(err.code === "unreachable" && !err.again ? undefined : err);
    if (this.dataset.state !== "ready") this.dataset.state = "failed";
  }

  async askToDelete() {
    const { twin } = this,
      etag = twin.etag;
    if (
      !(await confirm(
        `Delete ${visible(twin.name)}?`,
        `This ends its life at revision ${count(twin.revision)}, durably. What the history keeps of it stays.`,
        "Delete",
      ))
    )
      return;
    try {
      await request("DELETE", twin.path, { headers: { "If-Match": etag } });
      go({ view: "pod", pod: twin.pod });
    } catch (err) {
      this.note.show(
        err.code === "stale_revision"
          ? Object.assign(err, { message: "It has changed since you asked. Look at it again before you delete it." })
          : err,
      );
    }
  }
}

customElements.define("entity-view", EntityView);
