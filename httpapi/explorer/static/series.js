// The numbers of an entity's states over its revisions.

import { Exact, isObject, numberOf } from "./json.js";
import { formatPath } from "./paths.js";

const deepest = 4; // levels of the state
const most = 40; // paths

// seriesOf returns for each path at which a number stands in some revision its
// points, {life, revision, time, value, text}, oldest first: text is the number as
// it is, value what it is drawn as, and infinite if it is beyond JavaScript's. A
// revision without the number has no point.
export function seriesOf(revisions) {
  const found = new Map();
  for (const r of revisions) {
    if (isObject(r.state)) collect(r.state, ["state"], r, found);
  }
  return found;
}

function collect(state, steps, r, found) {
  for (const [name, value] of Object.entries(state)) {
    const n = value instanceof Exact ? Number(value.text) : numberOf(value);
    if (n !== undefined) add(formatPath([...steps, name]), n, String(value), r, found);
    else if (isObject(value) && steps.length < deepest) collect(value, [...steps, name], r, found);
  }
}

function add(path, value, text, { life, revision, changed }, found) {
  let points = found.get(path);
  if (!points) {
    if (found.size >= most) return;
    found.set(path, (points = []));
  }
  points.push({ life, revision, time: Date.parse(changed), value, text });
}
