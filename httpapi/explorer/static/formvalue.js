// What a form's text fields hold, read as JSON by the schema of the field.

import { exactly, isNumberText, isObject, numberOf, stringify } from "./json.js";

// BadField says why a field's text is no value.
export class BadField extends Error {}

// readNumber reads a number, whose text is kept.
export function readNumber(text, schema, whole) {
  text = text.trim().replace(/^\+/, "");
  if (!isNumberText(text)) throw new BadField(whole ? "a whole number, such as 21" : "a number, such as 21.5");
  const value = exactly(text),
    n = numberOf(value);
  if (whole && !/^-?\d+$/.test(text)) throw new BadField("a whole number, such as 21");
  if (n !== undefined) bounded(n, schema);
  return value;
}

function bounded(n, { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf }) {
  if (minimum !== undefined && n < Number(minimum)) throw new BadField(`at least ${minimum}`);
  if (maximum !== undefined && n > Number(maximum)) throw new BadField(`at most ${maximum}`);
  if (typeof exclusiveMinimum === "number" && n <= exclusiveMinimum) throw new BadField(`more than ${exclusiveMinimum}`);
  if (typeof exclusiveMaximum === "number" && n >= exclusiveMaximum) throw new BadField(`less than ${exclusiveMaximum}`);
  const times = n / numberOf(multipleOf); // what is left of it in a float is less exact the greater it is
  if (numberOf(multipleOf) && Math.abs(times - Math.round(times)) > 1e-9 * Math.max(1, Math.abs(times)))
    throw new BadField(`a multiple of ${multipleOf}`);
}

// readText checks a text.
export function readText(text, { minLength, maxLength, pattern, format }) {
  const length = [...text].length;
  if (minLength > length) throw new BadField(`at least ${minLength} characters`);
  if (maxLength < length) throw new BadField(`at most ${maxLength} characters`);
  if (typeof pattern === "string" && !fits(pattern, text)) throw new BadField(`of the form ${pattern}`);
  if (format === "date-time" && Number.isNaN(Date.parse(text))) throw new BadField("a time, such as 2026-01-31T12:00:00Z");
  return text;
}

// A pattern that this browser does not know is left to the server.
function fits(pattern, text) {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}

// start is the value that a field begins with.
export function start(schema) {
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.examples) && schema.examples.length > 0) return schema.examples[0];
  return undefined;
}

// hint says in a few words what a field takes.
export function hint(schema, types) {
  const parts = [types.join(" or ") || "JSON"];
  if (schema.format && !["int64", "int32", "double", "float"].includes(schema.format)) parts.push(schema.format);
  if (schema.minimum !== undefined) parts.push("≥ " + schema.minimum);
  if (schema.maximum !== undefined) parts.push("≤ " + schema.maximum);
  return parts.join(", ");
}

// sample writes a value as a field of JSON shows it.
export function sample(value) {
  return value === undefined ? "" : isObject(value) || Array.isArray(value) ? stringify(value, "  ") : stringify(value);
}
