// The headings of a table of entities, which sort it.

import { h } from "./dom.js";
import { label } from "./paths.js";

// headings are the cells of the columns, the name's first. sort is the present
// order, as the API takes it; turn is called with another one.
export function headings(columns, sort, turn) {
  const [by, down] = sort ? [sort.replace(/^-/, ""), sort.startsWith("-")] : ["name", false];
  return ["name", ...columns].map((column) => {
    const order = column !== by ? "none" : down ? "descending" : "ascending";
    const next = order === "ascending" ? "-" + column : order === "none" ? column : "";
    return h(
      "th",
      { scope: "col", "data-column": column, "aria-sort": order, title: column },
      h("button", { click: () => turn(next) }, label(column), h("span", { class: "order", "aria-hidden": "true" })),
    );
  });
}
