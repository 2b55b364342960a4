// <message-form> is a form for a message, made from its JSON Schema; or a text of
// JSON, for what the form cannot say.

import { h } from "./dom.js";
import { field } from "./formfields.js";
import { parseTyped, stringify } from "./json.js";

class MessageForm extends HTMLElement {
  // use makes the form for a schema; without one it is a text.
  use(schema) {
    this.field = schema ? field(schema, schema, {}) : undefined;
    this.raw = h("textarea", { name: "body", rows: 8, spellcheck: "false", "aria-label": "Message as JSON" });
    this.fault = h("p", { class: "error", role: "status", hidden: true });
    this.asText = !schema;
    this.draw();
  }

  draw() {
    this.replaceChildren(this.asText ? this.raw : this.field.element, this.fault);
  }

  // switchTo shows the text in place of the fields, or the fields. What the
  // fields hold is in the text then, if it can be read.
  switchTo(asText) {
    if (asText) {
      try {
        this.raw.value = stringify(this.field.read(), "  ");
      } catch {
        this.raw.value = "{}";
      }
    }
    this.asText = asText || !this.field;
    this.fault.hidden = true;
    this.draw();
  }

  focus() {
    if (this.asText) this.raw.focus();
    else this.field.focus();
  }

  // read returns the message as JSON; undefined if something is wrong with it,
  // which is shown then.
  read() {
    this.fault.hidden = true;
    try {
      if (!this.asText) return stringify(this.field.read() ?? {});
      parseTyped(this.raw.value);
      return this.raw.value;
    } catch (err) {
      if (err.control) err.control.focus();
      else {
        this.fault.textContent = err.message;
        this.fault.hidden = false;
      }
      return undefined;
    }
  }
}

customElements.define("message-form", MessageForm);

// messageForm makes a form for a schema.
export function messageForm(schema) {
  const made = document.createElement("message-form");
  made.use(schema);
  return made;
}
