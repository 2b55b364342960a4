// The rows of a table of entities, and how what a stream tells changes them.

import { flash, h, setAttributes, setText } from "./dom.js";
import { brief, kindOf, time, ago, visible } from "./format.js";
import { isNumber } from "./columns.js";
import { at, parsePath } from "./paths.js";
import { formatRoute } from "./route.js";

// Row is one entity in a table.
export class Row {
  constructor(pod, columns, entity) {
    this.name = entity.name;
    this.columns = columns.map((path) => [path, parsePath(path) ?? []]);
    this.cells = this.columns.map(([path]) => h("td", { "data-column": path }));
    this.link = h("a", { href: formatRoute({ view: "entity", pod, name: this.name }), dir: "auto", tabindex: "-1" }, visible(this.name));
    this.element = h(
      "tr",
      { "data-name": this.name, tabindex: "-1" },
      h("th", { scope: "row", "data-column": "name" }, this.link, h("span", { class: "live" })),
      this.cells,
    );
    this.set(entity);
  }

  cell(column) {
    return this.cells[this.columns.findIndex(([path]) => path === column)];
  }

  // set shows an entity, or what was selected of it, without further ado.
  set(entity) {
    this.put(entity);
    this.mark("");
  }

  // isBehind reports whether an event tells something newer than what is shown.
  isBehind(event) {
    return event.life > this.life || (event.life === this.life && event.revision > this.revision);
  }

  // take shows what an event tells, and flashes what it has changed.
  take(kind, event) {
    if (!this.isBehind(event)) return;
    if (kind === "deleted") {
      [this.life, this.revision] = [event.life, event.revision];
    } else {
      for (const cell of this.put(event)) flash(cell);
      flash(this.element);
    }
    this.mark(kind);
  }

  mark(kind) {
    setAttributes(this.element, { "data-live": kind || null, "data-life": this.life, "data-revision": this.revision });
    setText(this.element.querySelector(".live"), { left: "matches no more", deleted: "deleted" }[kind] ?? "");
  }

  // put fills the cells and returns those whose texts have changed.
  put(entity) {
    [this.life, this.revision] = [entity.life, entity.revision];
    return this.cells.filter((cell, i) => {
      const [path, steps] = this.columns[i];
      const value = at(entity, steps),
        text = path === "changed" ? ago(value) : brief(value);
      const other = cell.textContent !== text;
      setText(cell, text);
      setAttributes(cell, {
        class: other || !cell.className ? (isNumber(value) ? "number" : "") + " kind-" + kindOf(value) : cell.className,
        title: path === "changed" ? time(value) : text.length > 24 ? text : null,
      });
      return other;
    });
  }
}

// quarantinedRow stands for an entity that cannot be read.
export function quarantinedRow(line, columns) {
  return h(
    "tr",
    { "data-name": line.name, "data-live": "quarantined", tabindex: "-1" },
    h("th", { scope: "row", dir: "auto" }, visible(line.name)),
    h("td", { colspan: columns.length, class: "muted" }, h("span", { class: "tag warn" }, "quarantined"), " ", line.quarantined),
  );
}
