// <dead-letters> shows messages that reached nobody, as it happens.

import { get } from "./api.js";
import { h, icon, icons, perFrame, setAttributes, setText } from "./dom.js";
import { count, time, visible } from "./format.js";
import { enterable, moveFocus } from "./keys.js";
import { patiently } from "./patience.js";
import { isAbort, problemNote } from "./problem.js";
import { formatRoute } from "./route.js";
import { Stream } from "./stream.js";

const most = 500; // rows

class DeadLetters extends HTMLElement {
  waiting = []; // that are not shown yet, oldest first
  last = 0; // the number of the newest that was taken

  connectedCallback() {
    this.note = problemNote();
    this.number = h("span", { "data-field": "count", class: "muted" });
    this.pause = h("button", { "data-action": "pause", "aria-pressed": "false", click: () => this.stopOrGo() });
    this.body = h("tbody", { keydown: (e) => moveFocus(e, this.body) });
    this.empty = h("p", { class: "empty", hidden: true }, "Every message has reached somebody since the server's start.");
    this.append(
      h("div", { class: "head" }, h("h1", {}, "Dead letters"), this.number, h("div", { class: "actions" }, this.pause)),
      this.note,
      h(
        "div",
        { class: "card scroll" },
        h(
          "table",
          { class: "letters" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              [["Number", "number"], ["Time"], ["To"], ["Message"], ["Reason"]].map(([t, c]) => h("th", { scope: "col", class: c }, t)),
            ),
          ),
          this.body,
        ),
        this.empty,
      ),
    );
    this.draw = perFrame(() => this.showNew());
    this.showPause();
    this.stream = new Stream(
      "v1/deadletters",
      {},
      {
        opened: (fresh) => fresh && this.load(),
        on: (kind, data) => this.told(kind, data),
        failed: (problem) => this.note.show(problem),
      },
    ).start();
  }

  disconnectedCallback() {
    this.stream.stop();
    this.loading?.abort();
  }

  show() {}

  // load reads those from before the stream.
  async load() {
    this.loading?.abort();
    const { signal } = (this.loading = new AbortController()),
      read = () => get("v1/deadletters", { limit: most }, { signal });
    try {
      const list = await patiently(read, signal, (err) => this.note.show(err));
      const since = this.waiting.slice(this.waiting.findLastIndex(isRestart) + 1), // of before, the list has nothing
        told = since.filter((w) => w.kind === "deadletter" && w.data.number > (list.items.at(-1)?.number ?? 0));
      this.body.replaceChildren();
      this.last = 0;
      this.waiting = list.items.map((data) => ({ kind: "deadletter", data }));
      this.waiting.push(...told);
      this.total = list.count;
      this.note.show();
      this.dataset.state = "ready";
      this.draw();
    } catch (err) {
      if (!isAbort(err)) this.note.show(err);
    }
  }

  told(kind, data) {
    if (kind !== "gap" && kind !== "deadletter") return;
    this.waiting.push({ kind, data });
    if (this.waiting.length > most) {
      const restart = this.waiting.splice(0, this.waiting.length - most).findLast(isRestart);
      if (restart) this.waiting.unshift(restart); // without it those behind it would be taken for old ones
    }
    this.total = data.number ?? this.total;
    this.draw();
  }

  showNew() {
    setText(this.number, this.total === undefined ? "" : `${count(this.total)} since the server's start`);
    this.showPause();
    if (this.paused) return;
    for (const { kind, data } of this.waiting) {
      if (isRestart({ kind, data })) this.last = 0; // they are counted anew
      if (kind === "deadletter" && data.number <= this.last) continue;
      if (kind === "deadletter") this.last = data.number;
      this.body.prepend(kind === "gap" ? gap(data) : row(data));
    }
    this.waiting = [];
    while (this.body.children.length > most) this.body.lastChild.remove();
    this.empty.hidden = this.body.children.length > 0;
    enterable(this.body);
  }

  stopOrGo() {
    this.paused = !this.paused;
    this.showNew();
  }

  showPause() {
    const held = this.paused && this.waiting.length ? ` (${count(this.waiting.length)} waiting)` : "";
    const text = this.paused ? "Go on" + held : "Pause";
    if (this.pause.textContent !== text) this.pause.replaceChildren(icon(this.paused ? icons.play : icons.pause), text);
    setAttributes(this.pause, { "aria-pressed": String(Boolean(this.paused)) });
  }
}

function isRestart({ kind, data }) {
  return kind === "gap" && data.reason === "restarted";
}

function row(letter) {
  const [pod, name] = letter.to.startsWith("/") ? [] : letter.to.split(/\/(.*)/s);
  const to = visible(letter.to);
  return h(
    "tr",
    { "data-number": letter.number, "data-to": letter.to, "data-message": letter.message, tabindex: "-1" },
    h("td", { class: "number" }, count(letter.number)),
    h("td", {}, time(letter.at)),
    h("td", {}, name ? h("a", { href: formatRoute({ view: "entity", pod, name }), dir: "auto" }, to) : h("span", { dir: "auto" }, to)),
    h("td", {}, h("code", {}, letter.message), letter.asked ? h("span", { class: "tag quiet" }, "asked") : null),
    h("td", {}, letter.reason),
  );
}

function gap(data) {
  const text =
    data.reason === "restarted"
      ? "The server was started again: those of before are gone."
      : `${count(data.to - data.from + 1)} are not kept any more.`;
  return h("tr", { "data-gap": data.reason, class: "gap" }, h("td", { colspan: 5 }, text));
}

customElements.define("dead-letters", DeadLetters);
