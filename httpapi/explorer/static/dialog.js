// Dialogs. <confirm-dialog> asks whether something is meant that cannot be taken
// back.

import { h, icon, icons } from "./dom.js";

// dialog makes a dialog with a heading, which Escape and its cross close.
export function dialog(title, ...content) {
  const heading = h("h2", { id: "dialog-" + Math.random().toString(36).slice(2) }, title);
  const made = h(
    "dialog",
    { "aria-labelledby": heading.id },
    h(
      "div",
      { class: "dialog-head" },
      heading,
      h("button", { type: "button", class: "quiet", "aria-label": "Close", click: () => made.close() }, icon(icons.close)),
    ),
    ...content,
  );
  made.addEventListener("click", (e) => e.target === made && made.close()); // beside it
  return made;
}

class ConfirmDialog extends HTMLElement {
  // ask opens the dialog and returns whether the user says yes.
  ask(title, text, yes) {
    return new Promise((resolve) => {
      const form = h(
        "form",
        { method: "dialog" },
        h("p", {}, text),
        h(
          "div",
          { class: "actions" },
          h("button", { value: "no", autofocus: true }, "Cancel"),
          h("button", { value: "yes", class: "danger" }, yes),
        ),
      );
      const made = dialog(title, form);
      made.addEventListener("close", () => {
        resolve(made.returnValue === "yes");
        this.remove();
      });
      this.append(made);
      document.body.append(this);
      this.dataset.open = "";
      made.showModal();
    });
  }
}

customElements.define("confirm-dialog", ConfirmDialog);

// confirm asks whether something is meant.
export function confirm(title, text, yes) {
  return document.createElement("confirm-dialog").ask(title, text, yes);
}
