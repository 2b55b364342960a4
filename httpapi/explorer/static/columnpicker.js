// <column-picker> has the user choose the columns of a table.

import { dialog } from "./dialog.js";
import { h } from "./dom.js";
import { label } from "./paths.js";

class ColumnPicker extends HTMLElement {
  // pick shows the columns that there are and returns those that are wanted, in
  // their order; undefined if nothing is to change.
  pick(all, chosen) {
    return new Promise((resolve) => {
      const boxes = [...new Set([...chosen, ...all])].map((path) =>
        h("input", { type: "checkbox", value: path, checked: chosen.includes(path) }),
      );
      const form = h(
        "form",
        { method: "dialog" },
        h(
          "div",
          { class: "choices" },
          boxes.map((b) => h("label", { title: b.value }, b, " ", label(b.value))),
        ),
        h("div", { class: "actions" }, h("button", { value: "" }, "Cancel"), h("button", { value: "yes", class: "primary" }, "Show these")),
      );
      const made = dialog("Columns", form);
      made.addEventListener("close", () => {
        const wanted = boxes.filter((b) => b.checked).map((b) => b.value);
        resolve(made.returnValue === "yes" && wanted.length ? wanted : undefined);
        this.remove();
      });
      this.append(made);
      document.body.append(this);
      made.showModal();
    });
  }
}

customElements.define("column-picker", ColumnPicker);

// pickColumns has the user choose.
export function pickColumns(all, chosen) {
  return document.createElement("column-picker").pick(all, chosen);
}
