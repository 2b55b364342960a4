// What the messages of documents are like, which no pod describes: they are the
// same in each.

import { isObject } from "./json.js";
import { partly, schemaOf } from "./schema.js";

const pointer = { type: "string", description: "A JSON pointer, such as /celsius" };

// documentSchema is the JSON Schema of a document's message, for a pod's own
// schema and the state of an entity, if there are.
export function documentSchema(message, schema, state) {
  switch (message) {
    case "merge":
      return mergeSchema(schema, state);
    case "set":
      return {
        type: "object",
        properties: { pointer, value: { description: "The value that is to stand there" } },
        required: ["pointer", "value"],
      };
    case "remove":
      return { type: "object", properties: { pointer }, required: ["pointer"] };
  }
  return { description: 'The operations, such as [{"op": "replace", "path": "/celsius", "value": 21.5}]', examples: [[]] };
}

// mergeSchema is that of a merge patch: only what is filled in is sent.
function mergeSchema(schema, state) {
  const known = schema && isObject(schema.properties) ? schema : isObject(state) ? schemaOf(state) : { type: "object" };
  return Object.assign(partly(schema ?? known, known), {
    additionalProperties: known.additionalProperties ?? {},
    $defs: schema?.$defs,
    description: "Only what is filled in is changed; null removes a member.",
  });
}
