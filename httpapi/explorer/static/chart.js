// <number-chart> draws how a number went: steps, since a value holds until the
// next one, with a point for each change. The points are reached with the pointer
// and the arrow keys, and a table has the same.

import { h, setAttributes, setText, svg } from "./dom.js";
import { axis, brief, count, time } from "./format.js";
import { label } from "./paths.js";
import { linear, range, ticks, timeText, timeTicks } from "./scale.js";

const height = 150,
  left = 52,
  right = 12,
  top = 10,
  bottom = 24;

class NumberChart extends HTMLElement {
  connectedCallback() {
    if (this.drawing) return;
    this.heading = h("h3", { dir: "auto" });
    this.reading = h("output", { "data-field": "reading", "aria-live": "polite" });
    this.drawing = svg("svg", {
      role: "img",
      tabindex: "0",
      height,
      keydown: (e) => this.key(e),
      pointermove: (e) => this.point(e),
      pointerleave: () => this.mark(-1),
      blur: () => this.mark(-1),
      focus: () => this.mark(this.points.length - 1),
    });
    this.table = h("details", {}, h("summary", {}, "As a table"));
    this.table.addEventListener("toggle", () => this.fillTable());
    this.beyond = h("p", { "data-field": "beyond", class: "muted", hidden: true });
    this.append(h("div", { class: "chart-head" }, this.heading, this.reading), this.drawing, this.beyond, this.table);
    this.watching = new ResizeObserver(() => this.draw());
    this.watching.observe(this);
  }

  disconnectedCallback() {
    this.watching?.disconnect();
    this.drawing = undefined;
    this.replaceChildren();
  }

  // show draws points over time or over revisions. Those beyond any scale stand in
  // the table only.
  show(path, all, by) {
    const points = all.filter((p) => Number.isFinite(p.value));
    Object.assign(this, { path, all, points, by });
    setAttributes(this, { "data-path": path, "data-points": points.length });
    if (!this.drawing) return;
    setText(this.heading, label(path));
    const beyond = all.length - points.length;
    this.beyond.hidden = beyond === 0;
    setText(this.beyond, `${count(beyond)} ${beyond === 1 ? "value is" : "values are"} beyond the scale, and only in the table.`);
    if (points.length === 0) this.reading.replaceChildren();
    this.mark(-1);
    this.draw();
    this.fillTable();
  }

  x(point) {
    return this.by === "time" ? point.time : point.revision;
  }

  draw() {
    const width = Math.floor(this.clientWidth);
    if (!this.points || width < 80) return;
    const { points } = this,
      inner = width - left - right;
    const xs = range(points.map((p) => this.x(p))),
      ys = range(points.map((p) => p.value));
    const [first, last] = points.length > 1 ? [this.x(points[0]), this.x(points.at(-1))] : xs;
    const x = linear([first, last], [left, left + inner]),
      y = linear(ys, [height - bottom, top]);
    this.at = points.map((p) => [x(this.x(p)), y(p.value)]);
    setAttributes(this.drawing, { viewBox: `0 0 ${width} ${height}`, width, "aria-label": this.says() });
    const span = last - first,
      some = Math.max(2, Math.floor(inner / 90));
    const marks = this.by === "time" ? timeTicks(first, last, some) : ticks(first, last, some).filter(Number.isInteger);
    this.cursor = svg(
      "g",
      { class: "cursor", visibility: "hidden" },
      svg("line", { y1: top, y2: height - bottom }),
      svg("circle", { r: 5 }),
    );
    this.drawing.replaceChildren(
      ...ticks(...ys, 5).map((v) =>
        svg(
          "g",
          { class: "tick" },
          svg("line", { x1: left, x2: width - right, y1: y(v), y2: y(v) }),
          svg("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, axis(v)),
        ),
      ),
      ...marks.map((v) =>
        svg(
          "text",
          {
            class: "tick",
            x: x(v),
            y: height - 6,
            "text-anchor": x(v) > width - right - 30 ? "end" : x(v) < left + 20 ? "start" : "middle",
          },
          this.by === "time" ? timeText(v, span) : "r" + v,
        ),
      ),
      svg("path", { class: "area", d: this.at.length > 1 ? `${this.line()}V${height - bottom}H${this.at[0][0].toFixed(1)}Z` : "" }),
      svg("path", { class: "line", d: this.line() }),
      svg(
        "g",
        { class: points.length > inner / 6 ? "points dense" : "points" },
        this.at.map(([cx, cy], i) =>
          svg("circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: 2.5, "data-point": points[i].revision, "data-y": points[i].value }),
        ),
      ),
      this.cursor,
    );
    if (this.marked >= 0) this.mark(this.marked);
  }

  // line goes from point to point in steps; at a new life it begins anew.
  line() {
    return this.at
      .map(([px, py], i) => {
        const [sx, sy] = [px.toFixed(1), py.toFixed(1)];
        return i === 0 || this.points[i].life !== this.points[i - 1].life ? `M${sx},${sy}` : `H${sx}V${sy}`;
      })
      .join("");
  }

  says() {
    if (this.points.length === 0) return `${label(this.path)}: no value that can be drawn`;
    const values = this.points.map((p) => p.value),
      low = Math.min(...values),
      high = Math.max(...values);
    return `${label(this.path)}: ${count(values.length)} values from ${axis(low)} to ${axis(high)}, the last one ${this.points.at(-1).text}. The arrow keys go through them.`;
  }

  // mark shows one point's value; with -1 the last one's, and no mark.
  mark(i) {
    this.marked = i;
    const p = this.points?.[i] ?? this.points?.at(-1);
    if (!p) return;
    this.reading.replaceChildren(
      h("strong", {}, brief(p.text, 40)),
      i < 0 ? "" : h("span", { class: "muted" }, ` r${count(p.revision)}, ${time(p.time)}`),
    );
    if (!this.cursor) return;
    setAttributes(this.cursor, { visibility: i < 0 || !this.at[i] ? "hidden" : "visible" });
    if (i < 0 || !this.at[i]) return;
    const [x, y] = this.at[i];
    setAttributes(this.cursor.firstChild, { x1: x, x2: x });
    setAttributes(this.cursor.lastChild, { cx: x, cy: y });
  }

  point(event) {
    if (!this.at) return;
    const x = event.clientX - this.drawing.getBoundingClientRect().left;
    let best = 0;
    if (this.at.length === 0) return;
    this.at.forEach(([px], i) => Math.abs(px - x) < Math.abs(this.at[best][0] - x) && (best = i));
    this.mark(best);
  }

  key(event) {
    const last = this.points.length - 1,
      now = this.marked < 0 ? last : this.marked;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.mark(Math.min(Math.max(to, 0), last));
  }

  fillTable() {
    this.table.querySelector(".scroll")?.remove();
    if (!this.table.open) return;
    this.table.append(
      h(
        "div",
        { class: "scroll" },
        h(
          "table",
          {},
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              h("th", { scope: "col", class: "number" }, "Revision"),
              h("th", { scope: "col" }, "Time"),
              h("th", { scope: "col", class: "number" }, "Value"),
            ),
          ),
          h(
            "tbody",
            {},
            [...this.all]
              .reverse()
              .map((p) =>
                h(
                  "tr",
                  {},
                  h("td", { class: "number" }, count(p.revision)),
                  h("td", {}, time(p.time)),
                  h("td", { class: "number", "data-value": p.text }, brief(p.text, 400)),
                ),
              ),
          ),
        ),
      ),
    );
  }
}

customElements.define("number-chart", NumberChart);
