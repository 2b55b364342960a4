// Server-sent events, read from the parts of a text as they come.

// EventParser calls on with each event: {event, data, id}. An id that stands
// alone is told as one whose data is undefined, since it says where to go on. It
// calls comment with each comment.
export class EventParser {
  #rest = "";
  #begun = false;
  #event = "";
  #data = [];
  #id = undefined;
  #on;
  #comment;

  constructor(on, comment = () => {}) {
    this.#on = on;
    this.#comment = comment;
  }

  // push takes the next part of the text. Lines end with \n, \r\n or \r; a \r at
  // the end of a part may be the first half of \r\n, so it waits for more.
  push(text) {
    if (!this.#begun && text) {
      this.#begun = true;
      if (text.startsWith("\ufeff")) text = text.slice(1);
    }
    text = this.#rest + text;
    let begin = 0;
    for (;;) {
      const end = nextEnd(text, begin);
      if (end < 0) break;
      const both = text[end] === "\r" && text[end + 1] === "\n";
      this.#line(text.slice(begin, end));
      begin = end + (both ? 2 : 1);
    }
    this.#rest = text.slice(begin);
  }

  #line(line) {
    if (line === "") return this.#dispatch();
    if (line.startsWith(":")) return this.#comment(line.slice(1).trim());
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "event") this.#event = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "id" && !value.includes("\0")) this.#id = value;
  }

  #dispatch() {
    const id = this.#id,
      data = this.#data,
      event = this.#event || "message";
    [this.#event, this.#data, this.#id] = ["", [], undefined];
    if (data.length > 0) this.#on({ event, data: data.join("\n"), id });
    else if (id !== undefined) this.#on({ event: "", data: undefined, id });
  }
}

function nextEnd(text, from) {
  for (let i = from; i < text.length; i++) {
    if (text[i] === "\n") return i;
    if (text[i] === "\r") return i + 1 < text.length ? i : -1;
  }
  return -1;
}
