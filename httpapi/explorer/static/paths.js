// Paths into an entity, as filters, orders and selections write them
// (state.celsius, state["odd name"], state.list[0]), and JSON pointers into a
// state (/celsius).

import { isObject } from "./json.js";

const wordly = /^[A-Za-z_][A-Za-z0-9_]*$/;

// formatPath writes the names and indexes that lead to a place.
export function formatPath(steps) {
  return steps.map((s, i) => (typeof s === "number" ? `[${s}]` : wordly.test(s) ? (i ? "." : "") + s : `[${JSON.stringify(s)}]`)).join("");
}

// parsePath reads what formatPath writes; undefined if it is no path.
export function parsePath(text) {
  const steps = [],
    part = /(?:^|\.)([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/y;
  while (part.lastIndex < text.length) {
    const found = part.exec(text);
    if (!found) return undefined;
    steps.push(found[1] ?? (found[2] !== undefined ? Number(found[2]) : JSON.parse(found[3])));
  }
  return steps.length ? steps : undefined;
}

// at is the value at a place; undefined if nothing stands there.
export function at(value, steps) {
  for (const step of steps) {
    if (Array.isArray(value) ? typeof step !== "number" : !isObject(value) || !Object.hasOwn(value, step)) return undefined;
    value = value[step];
  }
  return value;
}

// label is a path as a heading: that it is in the state need not be said.
export function label(path) {
  return path.startsWith("state.") ? path.slice(6) : path.startsWith("state[") ? path.slice(5) : path;
}

// pointer adds a step to a JSON pointer.
export function pointer(before, step) {
  return before + "/" + String(step).replaceAll("~", "~0").replaceAll("/", "~1");
}

// steps are those of a JSON pointer, all as texts.
export function steps(text) {
  return text === ""
    ? []
    : text
        .slice(1)
        .split("/")
        .map((s) => s.replaceAll("~1", "/").replaceAll("~0", "~"));
}
