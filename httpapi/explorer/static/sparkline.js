// A line without axes: how a number went in the last while.

import { svg } from "./dom.js";

const width = 96,
  height = 24;

// Sparkline keeps the last so many values.
export class Sparkline {
  #values = [];
  #line = svg("polyline", { class: "line" });
  #area = svg("polygon", { class: "area" });
  element = svg(
    "svg",
    { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("line", { class: "base", x1: 0, x2: width, y1: height - 1, y2: height - 1 }),
    this.#area,
    this.#line,
  );

  constructor(most = 48) {
    this.most = most;
  }

  add(value) {
    this.#values.push(value);
    if (this.#values.length > this.most) this.#values.shift();
    const top = Math.max(1, ...this.#values);
    const step = width / (this.most - 1),
      first = this.most - this.#values.length;
    const points = this.#values.map((v, i) => `${((first + i) * step).toFixed(1)},${(height - 2 - (v / top) * (height - 4)).toFixed(1)}`);
    this.#line.setAttribute("points", points.join(" "));
    this.#area.setAttribute("points", `${(first * step).toFixed(1)},${height} ${points.join(" ")} ${width},${height}`);
  }
}
