// <change-feed> lists the last changes that a stream has told.

import { h, perFrame, setText } from "./dom.js";
import { count, visible } from "./format.js";
import { formatRoute } from "./route.js";

const most = 200;

class ChangeFeed extends HTMLElement {
  #new = []; // that are not shown yet, oldest first
  #seen = 0;

  connectedCallback() {
    this.list = h("ol", { "aria-label": "The last changes" });
    this.number = h("span", { class: "muted" });
    this.append(h("h2", {}, "Changes ", this.number), this.list, h("p", { class: "empty" }, "None since you came here."));
    this.draw = perFrame(() => this.show());
    this.dataset.seen = 0;
  }

  // add takes an event of a watch. Of a burst only the last ones are shown. Where
  // all are of one entity, says stands in place of its name.
  add(kind, data, says) {
    this.#seen++;
    this.#new.push([kind, data, says]);
    if (this.#new.length > most) this.#new.splice(0, this.#new.length - most);
    this.draw();
  }

  show() {
    for (const [kind, data, says] of this.#new) this.list.prepend(line(kind, data, says));
    this.#new = [];
    while (this.list.children.length > most) this.list.lastChild.remove();
    this.dataset.seen = this.#seen;
    setText(this.number, count(this.#seen));
  }
}

function line(kind, data, says) {
  if (kind === "gap") {
    return h(
      "li",
      { "data-kind": kind, "data-position": data.to ?? null },
      h("span", { class: "tag warn" }, "gap"),
      " changes are missing: ",
      data.reason,
    );
  }
  return h(
    "li",
    {
      "data-kind": kind,
      "data-name": data.name,
      "data-life": data.life,
      "data-revision": data.revision,
      "data-position": data.position ?? null,
    },
    says ?? h("a", { href: formatRoute({ view: "entity", pod: data.pod, name: data.name }), dir: "auto" }, visible(data.name)),
    h("span", { class: "muted" }, kind === "changed" ? data.type : kind === "left" ? "matches no more" : "deleted"),
    h("span", { class: "number muted" }, "r", data.revision),
  );
}

customElements.define("change-feed", ChangeFeed);
