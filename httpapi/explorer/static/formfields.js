// The fields of a form that is made from a JSON Schema. Each has its element, read
// for its value (undefined leaves the member out) and focus. What cannot be shown
// as fields is a text of JSON.

import { h, icon, icons } from "./dom.js";
import { BadField, hint, readNumber, readText, sample, start } from "./formvalue.js";
import { isObject, parse, parseTyped, stringify } from "./json.js";
import { pointer } from "./paths.js";
import { resolve, typesOf } from "./schema.js";

const deepest = 6; // levels, since schemas may refer to themselves
const many = 100; // fields of an object that are shown at once
let made = 0; // fields, for their ids

// field makes the field of a schema. at is its JSON pointer; required says that
// the value must be there.
export function field(root, schema, { at = "", label = "", required = true, level = 0 }) {
  const { value, types, nullable } = typesOf(root, schema);
  const f = { root, schema: value, types, nullable, at, label, required, level };
  const mixed = ["oneOf", "anyOf", "allOf", "not", "if", "prefixItems", "foreign"].some((k) => value[k] !== undefined);
  if (Array.isArray(value.enum) || value.const !== undefined) return choice(f, value.enum ?? [value.const]);
  if (!mixed && types.length === 1 && level < deepest) {
    if (types[0] === "object" && (isObject(value.properties) || isObject(value.additionalProperties) || level === 0)) return object(f);
    if (types[0] === "array" && isObject(value.items)) return list(f);
    if (types[0] === "boolean") return choice(f, [true, false]);
    if (types[0] === "number" || types[0] === "integer")
      return text(f, (t) => readNumber(t, value, types[0] === "integer"), { inputmode: "decimal", class: "number" });
    if (types[0] === "string") return text(f, (t) => readText(t, value), {});
  }
  return json(f);
}

// labelled puts a label above a control and a place for its fault below.
function labelled(f, control, read) {
  const fault = h("span", { class: "error", role: "status", hidden: true });
  control.id = "field-" + ++made;
  const title = h("label", { class: "title", for: control.id, dir: "auto" }, f.label || "Value");
  const optional = f.required ? null : h("span", { class: "muted" }, "optional");
  const none =
    f.nullable &&
    h("label", { class: "null" }, (f.none = h("input", { type: "checkbox", change: () => (control.disabled = f.none.checked) })), " null");
  const about = f.schema.description ? h("span", { class: "muted about" }, f.schema.description) : null;
  const element = h("div", { class: "form-field" }, h("div", { class: "form-head" }, title, optional, none), control, about, fault);
  return {
    element,
    focus: () => control.focus(),
    read() {
      fault.hidden = true;
      control.removeAttribute("aria-invalid");
      if (f.none?.checked) return null;
      try {
        return read();
      } catch (err) {
        fault.textContent = err.message;
        fault.hidden = false;
        control.setAttribute("aria-invalid", "true");
        throw Object.assign(new BadField(`${f.at || "the message"}: ${err.message}`), { control });
      }
    },
  };
}

function text(f, check, attributes) {
  const begin = start(f.schema);
  const control = h("input", {
    type: "text",
    name: f.at,
    autocomplete: "off",
    spellcheck: "false",
    placeholder: hint(f.schema, f.types),
    value: begin === undefined ? "" : String(begin),
    ...attributes,
  });
  return labelled(f, control, () => {
    if (control.value === "" && (!f.required || f.types[0] !== "string")) {
      if (f.required) throw new BadField("is needed");
      return undefined;
    }
    return check(control.value);
  });
}

function choice(f, values) {
  const begin = start(f.schema);
  const options = values.map((v) =>
    h("option", { value: stringify(v), selected: stringify(v) === stringify(begin) }, typeof v === "string" ? v : stringify(v)),
  );
  if (!f.required || f.types[0] !== "boolean")
    options.unshift(h("option", { value: "", selected: begin === undefined }, f.required ? "choose…" : "leave out"));
  else if (begin === undefined) options.at(-1).selected = true;
  const control = h("select", { name: f.at }, options);
  return labelled(f, control, () => {
    if (control.value === "" && f.required) throw new BadField("choose one");
    return control.value === "" ? undefined : parse(control.value);
  });
}

function json(f) {
  const control = h("textarea", {
    name: f.at,
    rows: f.level === 0 ? 6 : 3,
    spellcheck: "false",
    placeholder: "JSON",
    value: sample(start(f.schema)),
  });
  return labelled(f, control, () => {
    if (control.value.trim() === "") {
      if (f.required) throw new BadField('JSON is needed, such as {} or "text"');
      return undefined;
    }
    return parseTyped(control.value);
  });
}

// object is a group of fields. One that may be left out or be null is only sent
// when it was added.
function object(f) {
  const properties = Object.entries(f.schema.properties ?? {}),
    needed = f.schema.required ?? [];
  const fields = new Map();
  const free = f.schema.additionalProperties;
  const members = isObject(free) || free === true || (free === undefined && properties.length === 0) ? additional(f, free) : undefined;
  const inside = h("div", { class: "inside" });
  let shown = many;
  const grow = () => {
    for (const [name, schema] of properties.slice(0, shown)) {
      if (fields.has(name)) continue;
      const required = needed.includes(name);
      fields.set(name, field(f.root, resolve(f.root, schema), { at: pointer(f.at, name), label: name, required, level: f.level + 1 }));
    }
    const left = properties.length - shown;
    const more = left > 0 && h("button", { type: "button", "data-action": "more-fields", click: () => ((shown += many), grow()) }, `${left} more`);
    inside.replaceChildren(...[...fields.values()].map((x) => x.element), ...(more ? [more] : []), ...(members ? [members.element] : []));
    if (properties.length === 0 && !members) inside.append(h("p", { class: "muted" }, "It has no fields."));
  };
  const optional = f.level > 0 && (!f.required || f.nullable);
  const there = optional && h("input", { type: "checkbox", name: f.at, change: () => (there.checked ? grow() : inside.replaceChildren()) });
  if (!optional) grow();
  const head =
    f.level > 0 &&
    h(
      "legend",
      {},
      optional ? h("label", {}, there, " ", f.label) : f.label,
      f.required ? null : h("span", { class: "muted" }, " optional"),
    );
  return {
    element: h(
      f.level > 0 ? "fieldset" : "div",
      { class: "form-object" },
      head,
      f.schema.description && f.level === 0 ? h("p", { class: "muted" }, f.schema.description) : null,
      inside,
    ),
    focus: () => (fields.values().next().value ?? members)?.focus(),
    read() {
      if (optional && !there.checked) return f.required ? null : undefined;
      const object = Object.create(null);
      for (const [name, x] of fields) {
        const value = x.read();
        if (value !== undefined) object[name] = value;
      }
      members?.into(object);
      return object;
    },
  };
}

// rows is a list of fields to which the user adds.
function rows(what, make) {
  const all = [],
    element = h("div", { class: "form-rows" });
  const add = h("button", { type: "button", "data-action": "add", click: () => grow().focus() }, icon(icons.plus), what);
  element.append(add);
  function grow() {
    const row = make(all.length);
    row.line = h(
      "div",
      { class: "form-row" },
      row.key,
      row.element,
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          "aria-label": "Remove",
          click: () => {
            all.splice(all.indexOf(row), 1);
            row.line.remove();
            add.focus();
          },
        },
        icon(icons.close),
      ),
    );
    all.push(row);
    element.insertBefore(row.line, add);
    return row;
  }
  return { element, all, grow, focus: () => add.focus() };
}

function additional(f, schema) {
  const made = rows("Add a member", (i) => {
    const key = h("input", {
      type: "text",
      class: "key",
      "aria-label": "Name",
      placeholder: "name",
      name: `${f.at}/~name${i}`,
      autocomplete: "off",
    });
    const row = field(f.root, resolve(f.root, schema), { at: `${f.at}/~value${i}`, label: "Value", level: f.level + 1 });
    return { ...row, key, focus: () => key.focus() };
  });
  return { ...made, into: (object) => made.all.forEach((row) => (object[row.key.value] = row.read())) };
}

function list(f) {
  const made = rows("Add an element", (i) =>
    field(f.root, resolve(f.root, f.schema.items), { at: pointer(f.at, i), label: "", level: f.level + 1 }),
  );
  for (let i = 0; i < Math.min(Number(f.schema.minItems ?? 0), 20); i++) made.grow();
  const none = f.nullable && h("label", { class: "null" }, (f.none = h("input", { type: "checkbox" })), " null");
  return {
    element: h(
      "fieldset",
      { class: "form-object" },
      h("legend", {}, f.label || "List", f.required ? null : h("span", { class: "muted" }, " optional")),
      none,
      made.element,
    ),
    focus: made.focus,
    read() {
      if (f.none?.checked) return null;
      if (made.all.length === 0 && !f.required) return undefined;
      return made.all.map((row) => row.read());
    },
  };
}
