// <token-dialog> asks for a token when the server wants one.

import { h } from "./dom.js";
import { problemNote } from "./problem.js";
import { token } from "./token.js";

class TokenDialog extends HTMLElement {
  connectedCallback() {
    this.note = problemNote();
    this.input = h("input", {
      type: "password",
      name: "token",
      autocomplete: "off",
      spellcheck: "false",
      required: true,
      autofocus: true,
      "aria-label": "Token",
    });
    this.box = h(
      "dialog",
      { "aria-label": "Token" },
      h("h2", {}, "This server wants a token"),
      h(
        "form",
        { submit: (e) => this.give(e) },
        h("p", {}, "It is kept in this tab until you close it. Ask whoever runs the server; a token that may only read is enough to look."),
        this.input,
        this.note,
        h("div", { class: "actions" }, h("button", { type: "submit", class: "primary" }, "Go on")),
      ),
    );
    // Nothing can be shown without. A browser lets itself be prevented only once
    // the user has done something, so that the dialog may have to come back.
    this.box.addEventListener("cancel", (e) => e.preventDefault());
    this.box.addEventListener("close", () => token.asked && !this.box.open && this.ask(""));
    this.append(this.box);
    token.addEventListener("ask", (e) => this.ask(e.detail));
    if (token.asked) this.ask("");
  }

  ask(refused) {
    this.note.show(refused ? { code: "unauthorized", status: 401, message: refused } : undefined);
    this.dataset.open = "";
    if (!this.box.open) this.box.showModal();
    this.input.focus();
  }

  give(event) {
    event.preventDefault();
    const value = this.input.value.trim();
    if (!/^[\x21-\x7e]+$/.test(value)) {
      return this.note.show({ code: "unauthorized", message: "a token has no spaces, and only signs that a header can carry" });
    }
    this.input.value = "";
    delete this.dataset.open;
    this.box.close();
    token.give(value);
  }
}

customElements.define("token-dialog", TokenDialog);
