// <help-overlay> lists the keys, and says what the page shows.

import { base } from "./api.js";
import { dialog } from "./dialog.js";
import { h } from "./dom.js";

const keys = [
  ["?", "this help"],
  ["/", "to the filter"],
  ["1 2 3", "pods, actors, dead letters"],
  ["↑ ↓", "through a table or a tree; Home and End to its ends"],
  ["Enter", "open what is marked"],
  ["← →", "close and open a branch of a tree; through the tabs and the points of a chart"],
  ["Ctrl Enter", "send the message, save the state"],
  ["Esc", "clear the filter, close a dialog"],
];

class HelpOverlay extends HTMLElement {
  open() {
    if (!this.box) {
      this.box = dialog(
        "Keyboard",
        h(
          "dl",
          { class: "keys" },
          keys.map(([key, what]) => [
            h(
              "dt",
              {},
              key.split(" ").map((k) => [h("kbd", {}, k), " "]),
            ),
            h("dd", {}, what),
          ]),
        ),
        h(
          "p",
          { class: "muted" },
          "A filter is an expression in CEL over name, revision, changed and state, such as ",
          h("code", {}, "state.celsius > 21.0"),
          ". Everything here is also in the API: ",
          h("a", { href: new URL("reference", base) }, "its reference"),
          ".",
        ),
      );
      this.box.addEventListener("close", () => delete this.dataset.open);
      this.append(this.box);
    }
    this.dataset.open = "";
    this.box.showModal();
  }
}

customElements.define("help-overlay", HelpOverlay);
