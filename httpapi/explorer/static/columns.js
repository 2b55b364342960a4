// The columns that a table of entities can have: what every entity has, and what
// its pod's schema or, without one, the states of some entities have.

import { isObject, numberOf } from "./json.js";
import { formatPath } from "./paths.js";
import { resolve, typesOf } from "./schema.js";

// envelope are the columns beside the name that every entity has.
export const envelope = ["revision", "changed", "life"];

const depth = 3; // how deep in the state columns are looked for
const most = 60; // columns to choose from
const usual = 6; // that are shown unless others are chosen

// columnsOf lists the paths of a state's single values, those that stand higher
// up first.
export function columnsOf(schema, states) {
  const found = new Map();
  if (schema) ofSchema(schema, schema, ["state"], found, 0);
  if (found.size === 0) for (const state of states) ofState(state, ["state"], found, 0);
  return [...found]
    .sort(([, a], [, b]) => a - b)
    .slice(0, most)
    .map(([path]) => path);
}

// shownFirst are the columns of a table of which nobody has chosen any.
export function shownFirst(columns) {
  return [...columns.slice(0, usual), "changed"];
}

function ofSchema(root, schema, steps, into, level) {
  const { value, types } = typesOf(root, schema);
  const properties = isObject(value.properties) ? Object.entries(value.properties) : [];
  if (properties.length > 0 && level < depth) {
    for (const [name, inner] of properties) ofSchema(root, resolve(root, inner), [...steps, name], into, level + 1);
  } else if (level > 0 && !types.includes("object") && !types.includes("array")) {
    into.set(formatPath(steps), level);
  }
}

function ofState(state, steps, into, level) {
  if (isObject(state) && level < depth) {
    for (const [name, inner] of Object.entries(state)) ofState(inner, [...steps, name], into, level + 1);
  } else if (level > 0 && !isObject(state) && !Array.isArray(state) && !into.has(formatPath(steps))) {
    into.set(formatPath(steps), level);
  }
}

// isNumber reports whether a cell's value stands at the right, as numbers do.
export function isNumber(value) {
  return numberOf(value) !== undefined;
}
