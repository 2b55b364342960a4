// <state-conflict> shows what two have made of the same state, and has the one
// who was slower decide what becomes of it.

import { h } from "./dom.js";
import { brief, count, kindOf } from "./format.js";
import { equal } from "./json.js";
import { merged, places } from "./merge.js";

const most = 200; // places that are shown

// StateConflict tells of the decision by an event: "decide" with the state that is
// to be saved, "theirs" if theirs stands, or "back" if the user edits on.
class StateConflict extends HTMLElement {
  // show compares a state with what others and the user made of it.
  show(base, theirs, yours) {
    this.all = places(base.life === theirs.life ? base.state : undefined, theirs.state, yours);
    this.states = [base.life === theirs.life ? base.state : undefined, theirs.state, yours];
    this.choices = new Map();
    const open = this.all.filter((p) => p.both).length;
    const action = (name, cls, text, decide) => h("button", { "data-action": name, class: cls, click: decide }, text);
    this.merge = action("merge", "primary", "Merge and save", () => this.decide(merged(...this.states, this.choices)));
    this.append(
      h(
        "div",
        { class: "card padded" },
        h("div", { class: "card-head" }, h("h2", { tabindex: "-1" }, "Somebody else was faster")),
        h(
          "p",
          {},
          `You began at revision ${count(base.revision)}, and it is at ${count(theirs.revision)} now. `,
          open === 0
            ? "You have changed different places, so that both can be kept."
            : `${open === 1 ? "One place" : count(open) + " places"} you have both changed: choose whose value is to stand.`,
        ),
        h(
          "div",
          { class: "scroll" },
          h(
            "table",
            { class: "conflict" },
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                ["Place", "Before", "Theirs", "Yours"].map((t) => h("th", { scope: "col" }, t)),
              ),
            ),
            h(
              "tbody",
              {},
              this.all.slice(0, most).map((p) => this.row(p)),
            ),
          ),
        ),
        h(
          "div",
          { class: "actions" },
          action("back", "", "Edit on", () => this.dispatchEvent(new Event("back"))),
          action("take-theirs", "", "Take theirs", () => this.dispatchEvent(new Event("theirs"))),
          action("overwrite", "danger", "Overwrite with yours", () => this.decide(yours)),
          this.merge,
        ),
      ),
    );
    this.allow();
    this.querySelector("h2").focus();
  }

  // showDeleted says that others have deleted what the user has changed.
  showDeleted(base, yours) {
    const action = (name, cls, text, decide) => h("button", { "data-action": name, class: cls, click: decide }, text);
    this.append(
      h(
        "div",
        { class: "card padded" },
        h("div", { class: "card-head" }, h("h2", { tabindex: "-1" }, "Somebody else has deleted it")),
        h(
          "p",
          {},
          `You began at revision ${count(base.revision)}. It is no more, and what you wrote is kept here: made again with it, it begins a new life.`,
        ),
        h(
          "div",
          { class: "actions" },
          action("back", "", "Edit on", () => this.dispatchEvent(new Event("back"))),
          action("take-theirs", "", "Leave it deleted", () => this.dispatchEvent(new Event("theirs"))),
          action("make-again", "primary", "Make it again with yours", () => this.decide(yours)),
        ),
      ),
    );
    this.querySelector("h2").focus();
  }

  row(place) {
    const side = (name) => {
      const value = place[name],
        text = h("span", { class: "value kind-" + kindOf(value) }, value === undefined ? "not there" : brief(value));
      if (name === "base" || !place.both)
        return h("td", { "data-side": name, class: name !== "base" && !equal(value, place.base) ? "kept" : "" }, text);
      const box = h("input", { type: "radio", name: "side" + place.pointer, value: name, change: () => this.choose(place, name) });
      return h("td", { "data-side": name }, h("label", {}, box, " ", text));
    };
    return h(
      "tr",
      { "data-pointer": place.pointer, "data-both": String(place.both) },
      h("th", { scope: "row" }, h("code", { dir: "auto" }, place.pointer || "the whole")),
      side("base"),
      side("theirs"),
      side("yours"),
    );
  }

  choose(place, whose) {
    this.choices.set(place.pointer, whose);
    this.allow();
  }

  allow() {
    this.merge.disabled = this.all.length > most || this.all.some((p) => p.both && !this.choices.has(p.pointer));
  }

  decide(state) {
    this.dispatchEvent(new CustomEvent("decide", { detail: state }));
  }
}

customElements.define("state-conflict", StateConflict);
