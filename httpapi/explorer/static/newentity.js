// <new-entity> makes an entity: by its first message, or of a document by its
// state.

import { entityPath } from "./api.js";
import { dialog } from "./dialog.js";
import { documentSchema } from "./documentmessages.js";
import { h } from "./dom.js";
import { messageForm } from "./messageform.js";
import { problemNote } from "./problem.js";
import { go } from "./route.js";
import { send } from "./send.js";

class NewEntity extends HTMLElement {
  open(description) {
    this.description = description;
    const creating = description.messages.filter((m) => m.creates);
    this.name = h("input", {
      type: "text",
      name: "name",
      required: true,
      autocomplete: "off",
      spellcheck: "false",
      autofocus: true,
      maxlength: 256,
    });
    this.select = h(
      "select",
      { name: "message", change: () => this.choose() },
      creating.map((m) => h("option", { value: m.name }, m.name)),
    );
    this.place = h("div");
    this.note = problemNote();
    const form = h(
      "form",
      { submit: (e) => this.make(e) },
      h("label", { class: "title" }, "Name", this.name),
      description.create?.names ? h("p", { class: "muted" }, "Names here are of the form ", h("code", {}, description.create.names)) : null,
      creating.length
        ? h("label", { class: "title" }, "First message", this.select)
        : h("p", { class: "muted" }, "No message of this pod creates entities."),
      this.place,
      this.note,
      h("div", { class: "actions" }, h("button", { type: "submit", class: "primary", disabled: creating.length === 0 }, "Create")),
    );
    this.box = dialog(`New in ${description.name}`, form);
    this.box.addEventListener("close", () => this.remove());
    this.append(this.box);
    document.body.append(this);
    if (creating.length) this.choose();
    this.box.showModal();
  }

  choose() {
    const message = this.description.messages.find((m) => m.name === this.select.value);
    const schema = this.description.type === "document" ? documentSchema(message.name, this.description.schema) : message.bodySchema;
    this.place.replaceChildren((this.form = messageForm(schema)));
  }

  async make(event) {
    event.preventDefault();
    const body = this.form.read(),
      { name: pod } = this.description,
      name = this.name.value;
    if (body === undefined) return;
    try {
      await send(entityPath(pod, name), this.select.value, body, { absent: true });
      this.box.close();
      go({ view: "entity", pod, name });
    } catch (err) {
      this.note.show(err.code === "condition_failed" ? Object.assign(err, { message: "There is an entity of this name already." }) : err);
    }
  }
}

customElements.define("new-entity", NewEntity);

// newEntity has the user make an entity of a pod.
export function newEntity(description) {
  if (description) document.createElement("new-entity").open(description);
}
