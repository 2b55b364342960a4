// <problem-note> says what went wrong where it went wrong.

import { h, setAttributes } from "./dom.js";

class ProblemNote extends HTMLElement {
  connectedCallback() {
    this.setAttribute("role", "alert");
  }

  // show takes an error; undefined hides the note.
  show(err) {
    this.hidden = !err;
    setAttributes(this, { "data-code": err?.code ?? null, "data-status": err?.status ?? null, "data-again": err?.again ? "true" : null });
    if (!err) return this.replaceChildren();
    const violations = (err.violations ?? []).map((v) => h("li", {}, h("code", {}, v.pointer || "the whole"), " ", v.message));
    this.replaceChildren(
      h("p", {}, err.code ? h("span", { class: "code" }, err.code.replaceAll("_", " ")) : null, " ", err.message, err.again ? " The page asks again by itself." : null),
      ...(violations.length ? [h("ul", {}, violations)] : []),
    );
  }
}

customElements.define("problem-note", ProblemNote);

// problemNote makes a note, which shows nothing until it is told of an error.
export function problemNote(err) {
  const note = document.createElement("problem-note");
  note.show(err);
  return note;
}

// isAbort reports whether an error only says that nobody wants the answer.
export function isAbort(err) {
  return err?.name === "AbortError";
}
