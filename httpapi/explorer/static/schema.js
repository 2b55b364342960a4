// JSON Schemas, as far as forms and tables need them.

import { isObject } from "./json.js";
import { steps } from "./paths.js";

// resolve follows the references of a schema to what it is, a bounded number of
// times. Other places than the schema itself are not followed.
export function resolve(root, schema) {
  for (let i = 0; i < 20 && isObject(schema) && typeof schema.$ref === "string"; i++) {
    const { $ref, ...beside } = schema;
    if (!$ref.startsWith("#")) return { ...beside, foreign: true };
    let to = root;
    for (const step of steps(decodeURIComponent($ref.slice(1)))) to = isObject(to) || Array.isArray(to) ? to[step] : undefined;
    if (!isObject(to)) return { ...beside, foreign: true };
    schema = { ...to, ...beside };
  }
  return isObject(schema) ? schema : {};
}

// typesOf says what types a schema's values have, and which schema is meant when
// a value is not null: that of an alternative, if null is the only other one.
export function typesOf(root, schema) {
  let value = resolve(root, schema),
    nullable = false;
  for (const many of ["anyOf", "oneOf"]) {
    if (!Array.isArray(value[many])) continue;
    const parts = value[many].map((p) => resolve(root, p));
    const others = parts.filter((p) => p.type !== "null");
    if (others.length === 1 && others.length < parts.length) {
      const { [many]: dropped, ...beside } = value;
      value = { ...others[0], ...beside };
      nullable = true;
    }
  }
  let types = value.type === undefined ? [] : [value.type].flat();
  if (types.includes("null")) nullable = true;
  types = types.filter((t) => t !== "null");
  if (types.length === 0 && isObject(value.properties)) types = ["object"];
  return { value, types, nullable };
}

// schemaOf describes what a value is like, for a pod that has no schema: every
// member may be left out.
export function schemaOf(value) {
  if (typeof value === "boolean" || typeof value === "string") return { type: typeof value };
  if (!isObject(value)) return typeof value === "number" || value?.text ? { type: "number" } : {};
  return { type: "object", properties: Object.fromEntries(Object.entries(value).map(([k, v]) => [k, schemaOf(v)])) };
}

// partly is a schema of which every member may be left out, or be null to be
// removed: that of a merge patch, which goes into objects in the same way, when
// somebody looks into them. A schema may refer to itself in each of its members.
export function partly(root, schema) {
  const { value, types } = typesOf(root, schema);
  if (types.includes("object") && isObject(value.properties)) {
    let inside;
    const look = () =>
      (inside ??= Object.fromEntries(Object.entries(value.properties).map(([name, inner]) => [name, partly(root, inner)])));
    const part = { ...value, type: "object", required: [], minProperties: undefined };
    return Object.defineProperty(part, "properties", { get: look, enumerable: false });
  }
  return { ...value, type: types.length ? [...types, "null"] : undefined };
}
