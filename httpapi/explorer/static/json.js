// JSON whose numbers keep their text. A number that a JavaScript number would
// write in another way (of many digits, with a trailing zero) is an Exact, so
// that what is read, edited and sent back is what it was.

// Exact is a number by its text.
export class Exact {
  constructor(text) {
    this.text = text;
  }
  valueOf() {
    return Number(this.text);
  }
  toString() {
    return this.text;
  }
}

// BadJSON says where a text is no JSON: position from 0, line and column from 1.
export class BadJSON extends Error {
  constructor(text, position, what) {
    const before = text.slice(0, position).split("\n");
    const line = before.length,
      column = before.at(-1).length + 1;
    super(`line ${line}, column ${column}: ${what}`);
    Object.assign(this, { position, line, column });
  }
}

// What may stand in a text whose numbers are not all written as JavaScript
// would: it may find something in texts, too, which costs only time.
const suspicious = /[\d.]{16}|\d[eE]|\.\d*0(?![\d])|-0(?![.\d])|0\.000000/;

// parse reads JSON. It fails with a BadJSON.
export function parse(text) {
  if (!suspicious.test(text)) {
    try {
      return JSON.parse(text);
    } catch {
      // The other parser says where.
    }
  }
  return new Parser(text).whole();
}

// parseTyped reads JSON that a person has written, in which a name that stands
// twice in an object is a mistake.
export function parseTyped(text) {
  return new Parser(text).whole();
}

const space = /[ \t\n\r]*/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const word = /true|false|null/y;

class Parser {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  whole() {
    const value = this.value();
    this.skip();
    if (this.at < this.text.length) this.fail("nothing more should stand here");
    return value;
  }

  fail(what) {
    throw new BadJSON(this.text, this.at, this.at >= this.text.length ? "the text ends too early" : what);
  }

  take(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (found) this.at += found.length;
    return found;
  }

  skip() {
    this.take(space);
    return this.text[this.at];
  }

  // next passes over a sign that has to stand here, and says which one it was.
  next(signs) {
    const sign = this.skip();
    if (sign === undefined || !signs.includes(sign)) this.fail(`${[...signs].join(" or ")} should stand here`);
    this.at++;
    return sign;
  }

  value() {
    switch (this.skip()) {
      case "{":
        return this.object();
      case "[":
        return this.array();
      case '"':
        return this.string();
    }
    const text = this.take(number);
    if (text) return exactly(text);
    const name = this.take(word);
    if (!name) this.fail("a value should stand here");
    return name === "null" ? null : name === "true";
  }

  string() {
    const text = this.take(string);
    if (!text) this.fail("this text is not written as JSON: it ends with a quote, and \\ stands before quotes and ends of lines");
    return JSON.parse(text);
  }

  object() {
    const made = Object.create(null); // any name is one, also __proto__
    this.at++;
    if (this.skip() === "}") return (this.at++, made);
    do {
      if (this.skip() !== '"') this.fail("a name in quotes should stand here");
      const begin = this.at,
        name = this.string();
      if (Object.hasOwn(made, name)) throw new BadJSON(this.text, begin, `${JSON.stringify(name)} stands twice`);
      this.next(":");
      made[name] = this.value();
    } while (this.next(",}") === ",");
    return made;
  }

  array() {
    const made = [];
    this.at++;
    if (this.skip() === "]") return (this.at++, made);
    do made.push(this.value());
    while (this.next(",]") === ",");
    return made;
  }
}

// exactly is a number, or an Exact where that is written in another way.
export function exactly(text) {
  const n = Number(text);
  return String(n) === text ? n : new Exact(text);
}

// isNumberText reports whether a text is a number of JSON, and nothing else.
export function isNumberText(text) {
  number.lastIndex = 0;
  return number.exec(text)?.[0] === text && text !== "";
}

// isObject reports whether a value is an object of JSON.
export function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Exact);
}

// numberOf is a value's number, or undefined if it is none or beyond numbers.
export function numberOf(value) {
  const n = value instanceof Exact ? Number(value.text) : value;
  return typeof n === "number" && Number.isFinite(n) ? n : undefined;
}

// stringify writes JSON, in lines if an indent is given. What is undefined is
// left out of objects.
export function stringify(value, indent = "", before = "") {
  if (value instanceof Exact) return value.text;
  const array = Array.isArray(value);
  if (!array && !isObject(value)) return JSON.stringify(value);
  const inner = before + indent;
  const parts = array
    ? value.map((v) => stringify(v ?? null, indent, inner))
    : Object.entries(value)
        .filter(([, v]) => v !== undefined)
        .map(([k, v]) => `${JSON.stringify(k)}:${indent && " "}${stringify(v, indent, inner)}`);
  const [open, close] = array ? "[]" : "{}";
  if (!indent || parts.length === 0) return open + parts.join(",") + close;
  return `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${before}${close}`;
}

// equal compares values of JSON, numbers by their text.
export function equal(a, b) {
  if (a === b) return true;
  if (a instanceof Exact || b instanceof Exact) return a instanceof Exact && b instanceof Exact && a.text === b.text;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((v, i) => equal(v, b[i]));
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((n) => Object.hasOwn(b, n) && equal(a[n], b[n]));
}
