// <state-tree> shows a value of JSON as a tree and, as it changes, what of it has
// just changed.

import { flash, h, setAttributes, setText } from "./dom.js";
import { brief, kindOf } from "./format.js";
import { isObject, stringify } from "./json.js";
import { pointer } from "./paths.js";
import { treeKeys } from "./tree.js";

const most = 100; // members of one object that are shown at first
const openTo = 2; // levels that are open at first

class StateTree extends HTMLElement {
  connectedCallback() {
    if (this.root) return;
    this.setAttribute("role", "tree");
    this.setAttribute("aria-label", "State");
    this.addEventListener("keydown", (e) => treeKeys(e, this));
  }

  // show shows a value. revision says at what the value came to be; with fresh,
  // places that are other than before flash.
  show(value, revision, fresh) {
    if (!this.root || !fresh) {
      this.root = new Node("", "", value, 0);
      this.root.open(true);
      this.replaceChildren(this.root.group);
      this.querySelector("[role=treeitem]")?.setAttribute("tabindex", "0");
    } else {
      this.root.update(value, revision);
      if (!this.querySelector('[tabindex="0"]')) this.querySelector("[role=treeitem]")?.setAttribute("tabindex", "0");
    }
  }
}

// Node is one place: its item, and once it was opened those inside.
class Node {
  constructor(at, key, value, level) {
    Object.assign(this, { at, level, shown: most, inner: new Map() });
    this.group = h("div", { role: level ? "group" : "none", class: "group" });
    this.value = h("span", { class: "value" });
    this.mark = h("span", { class: "twist", "aria-hidden": "true", click: () => this.open(!this.isOpen) });
    this.line = h("div", { class: "node" }, this.mark, h("span", { class: "key", dir: "auto" }, brief(key, 200)), this.value);
    this.item = h("div", { role: "treeitem", tabindex: "-1", "data-pointer": at }, this.line, this.group);
    this.item.open = (open) => this.open(open);
    this.set(value);
    if (level > 0 && level < openTo && this.entries.length <= most) this.open(true);
  }

  set(value) {
    this.json = value;
    this.entries = Array.isArray(value) ? [...value.entries()] : isObject(value) ? Object.entries(value) : [];
    const kind = kindOf(value),
      nested = kind === "array" || kind === "object";
    this.value.className = "value kind-" + kind;
    const size = this.entries.length;
    setText(
      this.value,
      nested
        ? size === 0
          ? kind === "array"
            ? "[ ]"
            : "{ }"
          : `${size} ${kind === "array" ? (size === 1 ? "element" : "elements") : size === 1 ? "member" : "members"}`
        : kind === "string"
          ? value
          : brief(value, 2000),
    );
    if (nested) this.value.removeAttribute("data-value");
    else this.value.setAttribute("data-value", stringify(value));
    this.item.classList.toggle("branch", size > 0);
    setAttributes(this.item, { "aria-expanded": size > 0 ? String(Boolean(this.isOpen)) : null });
  }

  open(open) {
    this.isOpen = open;
    this.group.hidden = !open && this.level > 0;
    if (open) this.fill();
    setAttributes(this.item, { "aria-expanded": this.entries.length > 0 ? String(open) : null });
  }

  // fill makes the items that are missing, in the order of the members, and
  // removes those whose members are gone.
  fill(made = () => {}) {
    const names = new Set(this.entries.map(([name]) => name));
    for (const [name, node] of this.inner) if (!names.has(name)) (node.item.remove(), this.inner.delete(name));
    this.entries.slice(0, this.shown).forEach(([name, value], i) => {
      let node = this.inner.get(name);
      if (!node) {
        this.inner.set(name, (node = new Node(pointer(this.at, name), String(name), value, this.level + 1)));
        made(node);
      }
      if (this.group.children[i] !== node.item) this.group.insertBefore(node.item, this.group.children[i] ?? null);
    });
    this.rest?.remove();
    const left = this.entries.length - this.shown;
    if (left <= 0) return;
    this.rest = h("button", { class: "quiet", click: () => ((this.shown += 5 * most), this.fill()) }, `${left} more`);
    this.group.append(this.rest);
  }

  // update goes on to another value, and marks what is other than before.
  update(value, revision) {
    const before = this.json;
    if (stringify(before) === stringify(value)) return;
    this.set(value);
    const nested = isObject(value) || Array.isArray(value);
    if (!nested || kindOf(before) !== kindOf(value) || !this.isOpen) this.fresh(revision);
    if (this.isOpen) {
      const entries = new Map(this.entries);
      for (const [name, node] of this.inner) if (entries.has(name)) node.update(entries.get(name), revision);
      this.fill((node) => node.fresh(revision));
    }
  }

  fresh(revision) {
    this.item.dataset.changedAt = revision;
    flash(this.line);
  }
}

customElements.define("state-tree", StateTree);
