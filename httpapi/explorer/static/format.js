// Values, numbers and times as people read them.

import { Exact, isObject, stringify } from "./json.js";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumFractionDigits: 3, maximumSignificantDigits: 6, roundingPriority: "lessPrecision" });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

// count writes a whole number with its thousands apart.
export function count(n) {
  return n === undefined ? "–" : whole.format(n);
}

// rate writes how much of something there is in a second.
export function rate(n) {
  if (n === undefined) return "–";
  if (n === 0) return "0";
  return n < 10 ? n.toFixed(1) : whole.format(n);
}

// axis writes a number beside an axis.
export function axis(n) {
  return Math.abs(n) >= 1e6 || (n !== 0 && Math.abs(n) < 1e-3) ? n.toExponential(2) : short.format(n);
}

// time writes a time of the API in the reader's own zone.
export function time(text) {
  const t = new Date(text);
  return Number.isNaN(t.getTime()) ? String(text) : moment.format(t);
}

// ago writes how long ago something was.
export function ago(text, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - Date.parse(text)) / 1000));
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 5) return "just now";
  for (const [span, name] of [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
  ]) {
    if (seconds >= span) return `${Math.floor(seconds / span)} ${name} ago`;
  }
  return `${seconds} s ago`;
}

// span writes a time that something took.
export function span(milliseconds) {
  if (milliseconds === undefined) return "–";
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${Math.round(milliseconds / 60_000)} min`;
}

// kindOf names the type of a value, for its colour.
export function kindOf(value) {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (value instanceof Exact) return "number";
  if (Array.isArray(value)) return "array";
  return isObject(value) ? "object" : typeof value;
}

// brief writes a value in one line of at most so many signs.
export function brief(value, most = 120) {
  if (value === undefined) return "";
  const text = typeof value === "string" ? value : stringify(value);
  const signs = text.length > most ? [...text.slice(0, most)].slice(0, -1).join("") + "…" : text;
  return signs.replace(/[\u0000-\u001f\u007f-\u009f]/g, (c) => (c === "\n" ? "⏎" : "\ufffd"));
}

// visible is a name with what cannot be seen made visible: signs that steer, or
// that turn the direction of what stands behind them.
export function visible(name) {
  return name.replace(
    /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => "⟨" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "⟩",
  );
}
