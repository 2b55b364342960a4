// <state-panel> shows an entity's state, and <state-editor> changes that of a
// document, provided that nobody else was faster.

import "./changefeed.js";
import "./conflict.js";
import { request } from "./api.js";
import { diff } from "./diff.js";
import { h, icon, icons, perFrame, setText } from "./dom.js";
import { brief, count } from "./format.js";
import { equal, isObject, parseTyped, stringify } from "./json.js";
import { problemNote } from "./problem.js";

class StatePanel extends HTMLElement {
  connectedCallback() {
    this.edit = h("button", { "data-action": "edit", hidden: true, click: () => this.begin() }, icon(icons.edit), "Edit");
    this.why = h("p", { "data-field": "why-not", class: "muted", hidden: true });
    this.tree = document.createElement("state-tree");
    this.card = h(
      "div",
      { class: "card padded" },
      h("div", { class: "card-head" }, h("h2", {}, "State"), h("span", { class: "spread" }), this.edit),
      this.tree,
      this.why,
    );
    this.feed = document.createElement("change-feed");
    this.left = h("div", {}, this.card);
    this.append(h("div", { class: "beside" }, this.left, (this.aside = h("aside", { class: "card" }, this.feed))));
    this.draw = perFrame(() => this.tree.show(this.twin.state, this.twin.revision, true));
  }

  describe(description) {
    const document = description.type === "document" && !description.readOnly;
    this.edit.dataset.allowed = document;
    this.why.hidden = document;
    setText(
      this.why,
      description.readOnly
        ? "This program does not have the pod's type, so its entities can only be read."
        : "The state of a typed entity changes by its messages only: the program's own code says what may become of it.",
    );
    this.allow();
  }

  allow() {
    this.edit.hidden = this.edit.dataset.allowed !== "true" || !this.twin.exists || Boolean(this.editor);
  }

  loaded() {
    this.card.hidden = !this.twin.exists;
    this.aside.hidden = !this.twin.exists && this.twin.seen === 0;
    if (this.twin.exists) this.tree.show(this.twin.state, this.twin.revision, this.life === this.twin.life);
    this.life = this.twin.life;
    this.allow();
    this.editor?.changed();
  }

  changed({ kind, data, before }) {
    this.feed.add(kind, data, summary(before, data.state));
    if (kind === "deleted" || this.life !== this.twin.life) return this.loaded();
    this.draw();
    this.editor?.changed();
  }

  begin() {
    this.editor = document.createElement("state-editor");
    this.editor.twin = this.twin;
    this.editor.addEventListener("done", () => {
      this.editor.remove();
      this.editor = undefined;
      this.allow();
      this.edit.focus();
    });
    this.left.append(this.editor);
    this.allow();
  }
}

// summary says in a line what a change made other than before.
function summary(before, state) {
  const [first, ...more] = state && before ? diff(before, state, 10) : [];
  if (!first) return h("span", {}, before ? "" : "a new life");
  const name = first.pointer.split("/").at(-1);
  return h(
    "span",
    { dir: "auto" },
    `${name} ${first.after === undefined ? "removed" : brief(first.after, 40)}${more.length ? ` and ${more.length} more` : ""}`,
  );
}

class StateEditor extends HTMLElement {
  connectedCallback() {
    const { twin } = this;
    this.base = { state: twin.state, etag: twin.etag, revision: twin.revision, life: twin.life };
    this.text = h("textarea", {
      name: "state",
      spellcheck: "false",
      "aria-label": "State as JSON",
      rows: 14,
      value: stringify(twin.state, "  "),
      input: () => this.check(),
      keydown: (e) => this.key(e),
    });
    this.error = h("p", { "data-field": "error", role: "status", class: "error", hidden: true });
    this.news = h("p", { class: "notice", hidden: true });
    this.note = problemNote();
    this.save = h("button", { "data-action": "save", class: "primary", click: () => this.put(this.text.value, this.base.etag) }, "Save");
    this.form = h(
      "div",
      { class: "card padded" },
      h("div", { class: "card-head" }, h("h2", {}, "Edit"), h("span", { class: "muted" }, `from revision ${count(this.base.revision)}`)),
      this.text,
      this.error,
      this.news,
      this.note,
      h("div", { class: "actions" }, h("button", { "data-action": "cancel", click: () => this.done() }, "Cancel"), this.save),
    );
    this.append(this.form);
    this.dataset.state = "editing";
    this.text.focus();
    this.text.setSelectionRange(0, 0);
    this.text.scrollTop = 0;
  }

  done() {
    this.dispatchEvent(new Event("done"));
  }

  key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.save.click();
    else if (event.key === "Escape" && equal(this.state(), this.base.state))
      this.done(); // nothing is lost
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // state is what the text says; undefined if that is no state.
  state() {
    try {
      return parseTyped(this.text.value);
    } catch {
      return undefined;
    }
  }

  check() {
    let what = "";
    try {
      if (!isObject(parseTyped(this.text.value))) what = "a state is an object: { … }";
    } catch (err) {
      what = err.message;
    }
    setText(this.error, what);
    this.error.hidden = !what;
    this.save.disabled = Boolean(what);
    this.text.setAttribute("aria-invalid", String(Boolean(what)));
  }

  changed() {
    const { twin } = this;
    this.news.hidden = twin.revision === this.base.revision && twin.life === this.base.life;
    if (!twin.exists) this.news.hidden = false;
    setText(
      this.news,
      twin.exists
        ? `Somebody else has changed it: it is at revision ${count(twin.revision)} now. When you save, you will see what both of you changed.`
        : "Somebody else has deleted it. When you save, you can make it again.",
    );
  }

  // put saves a text, provided that the state is still that of an ETag, or without
  // one that there is no such entity.
  async put(text, etag) {
    this.dataset.state = "saving";
    this.save.disabled = true;
    this.note.show();
    try {
      await request("PUT", this.twin.path + "/state", { body: text, headers: etag ? { "If-Match": etag } : { "If-None-Match": "*" } });
      this.dataset.state = "saved";
      this.done();
    } catch (err) {
      if (["stale_revision", "condition_failed", "no_such_entity"].includes(err.code)) return this.conflict();
      this.dataset.state = "editing";
      this.note.show(err);
    } finally {
      this.save.disabled = false;
    }
  }

  // conflict shows what others have made of the state meanwhile.
  async conflict() {
    let theirs;
    try {
      theirs = await request("GET", this.twin.path);
    } catch (err) {
      if (err.code !== "no_such_entity") {
        this.dataset.state = "editing";
        return this.note.show(err);
      }
    }
    this.dataset.state = "conflict";
    this.querySelector("state-conflict")?.remove();
    const view = document.createElement("state-conflict");
    view.addEventListener("decide", ({ detail }) => {
      view.remove();
      this.form.hidden = false;
      this.text.value = stringify(detail, "  ");
      this.put(this.text.value, theirs?.etag);
    });
    view.addEventListener("theirs", () => this.done());
    view.addEventListener("back", () => {
      view.remove();
      this.form.hidden = false;
      this.dataset.state = "editing";
      this.text.focus();
    });
    this.form.hidden = true;
    this.append(view);
    if (theirs) view.show(this.base, theirs.value, this.state());
    else view.showDeleted(this.base, this.state());
  }
}

customElements.define("state-panel", StatePanel);
customElements.define("state-editor", StateEditor);
