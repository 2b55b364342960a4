// <entity-messages> sends messages to an entity, shows what it answers, and keeps
// a list of those that were sent from here.

import { documentSchema } from "./documentmessages.js";
import { h, icon, icons, setAttributes, setText } from "./dom.js";
import { brief, span } from "./format.js";
import { stringify } from "./json.js";
import { messageForm } from "./messageform.js";
import { problemNote } from "./problem.js";
import { send } from "./send.js";

const most = 50; // messages that the list has

class EntityMessages extends HTMLElement {
  life = new AbortController();

  connectedCallback() {
    this.select = h("select", { name: "message", change: () => this.choose() });
    this.kind = h("span", { class: "muted" });
    this.place = h("div");
    this.async = h("input", { type: "checkbox", name: "async" });
    this.raw = h("input", { type: "checkbox", name: "raw", change: () => this.form.switchTo(this.raw.checked) });
    this.messageId = h("input", {
      type: "text",
      name: "id",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "none",
      maxlength: 200,
    });
    this.button = h("button", { "data-action": "send", class: "primary", click: () => this.send() }, icon(icons.send), "Send");
    this.note = problemNote();
    this.reply = h("pre", { "data-field": "reply", hidden: true, tabindex: "0", "aria-label": "Answer" });
    this.outcome = h("p", { class: "outcome", role: "status" });
    this.sent = h("ol", { "data-field": "sent", class: "sent" });
    this.append(
      h(
        "div",
        { class: "columns" },
        h(
          "div",
          { class: "card padded", keydown: (e) => this.key(e) },
          h("div", { class: "card-head" }, h("h2", {}, "Send a message")),
          h("div", { class: "message-choice" }, h("label", { class: "title" }, "Message", this.select), this.kind),
          this.place,
          h(
            "details",
            { class: "more" },
            h("summary", {}, "Options"),
            h(
              "div",
              {},
              h("label", {}, this.raw, " Write it as JSON"),
              h("label", {}, this.async, " Do not wait: have the server keep the answer"),
              h("label", { class: "title" }, "Message id (a repeat with the same one has no second effect)", this.messageId),
            ),
          ),
          h("div", { class: "actions" }, this.button),
        ),
        h(
          "div",
          { class: "card padded" },
          h("div", { class: "card-head" }, h("h2", {}, "Answer")),
          this.outcome,
          this.note,
          this.reply,
          h("h3", {}, "Sent from here"),
          this.sent,
          h("p", { class: "empty" }, "Nothing yet."),
        ),
      ),
    );
  }

  disconnectedCallback() {
    this.life.abort();
  }

  describe(description) {
    this.description = description;
    const options = description.messages.map((m) => h("option", { value: m.name }, m.name));
    const usual = description.messages.findIndex((m) => m.creates); // none that ends something
    if (usual >= 0) options[usual].selected = true;
    this.select.replaceChildren(...options);
    this.button.disabled = options.length === 0;
    this.choose();
  }

  loaded() {
    if (!this.touched && this.description?.type === "document") this.choose(); // the state says what can be merged
  }

  choose() {
    const message = (this.message = this.description.messages.find((m) => m.name === this.select.value));
    if (!message) return this.place.replaceChildren(h("p", { class: "muted" }, "Its pod takes no messages."));
    const { type, schema } = this.description;
    this.form = messageForm(type === "document" ? documentSchema(message.name, schema, this.twin.state) : message.bodySchema);
    this.form.addEventListener("input", () => (this.touched = true));
    setText(
      this.kind,
      { on: "changes the state", reply: "may change the state, and answers", query: "only reads" }[message.kind] +
        (message.creates ? "; creates the entity if there is none" : ""),
    );
    this.place.replaceChildren(this.form);
    this.touched = this.raw.checked = false;
  }

  key(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey || event.target.matches("message-form input"))) return;
    event.preventDefault();
    this.send();
  }

  async send() {
    const body = this.form.read();
    if (body === undefined || this.button.disabled) return;
    const name = this.message.name,
      begun = performance.now(),
      line = this.list(name, body);
    this.button.disabled = true;
    this.note.show();
    this.reply.hidden = true;
    setText(this.outcome, "Waiting for the answer…");
    let status;
    try {
      const answer = await send(this.twin.path, name, body, {
        id: this.messageId.value,
        async: this.async.checked,
        signal: this.life.signal,
        waiting: () => setText(this.outcome, "The server has taken it, and keeps the answer…"),
      });
      status = answer.status;
      setText(
        this.outcome,
        `${name} was answered in ${span(performance.now() - begun)}${answer.etag ? ", at " + answer.etag.replaceAll('"', "") : ""}.`,
      );
      setText(this.reply, answer.value === undefined ? "" : stringify(answer.value, "  "));
      setAttributes(this.reply, { "data-status": status });
      this.reply.hidden = answer.value === undefined;
      this.note.show();
    } catch (err) {
      if (err.name === "AbortError") return;
      status = err.status ?? 0;
      setText(this.outcome, "");
      this.note.show(
        err.code === "unreachable"
          ? Object.assign(err, {
              message: "There was no answer. The message may have been handled: send it again with a message id, or look at the state.",
            })
          : err,
      );
    } finally {
      this.button.disabled = false;
    }
    line.dataset.status = status;
    line.querySelector(".tag").textContent = status || "?";
  }

  list(name, body) {
    const again = h("button", { class: "quiet", title: "Write it into the form again", click: () => this.again(name, body) }, name);
    const line = h(
      "li",
      { "data-message": name },
      h("span", { class: "tag" }, "…"),
      again,
      h("code", {}, brief(body, 80)),
      h("time", { class: "muted" }, new Date().toLocaleTimeString()),
    );
    this.sent.prepend(line);
    while (this.sent.children.length > most) this.sent.lastChild.remove();
    return line;
  }

  again(name, body) {
    this.select.value = name;
    this.choose();
    this.raw.checked = true;
    this.form.switchTo(true);
    this.form.raw.value = body;
    this.form.focus();
  }
}

customElements.define("entity-messages", EntityMessages);
