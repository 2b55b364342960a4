// What is different between two values of JSON.

import { equal, isObject } from "./json.js";
import { pointer } from "./paths.js";

// diff lists the places that are different: {pointer, kind, before, after}, where
// kind is "added", "removed" or "changed". Objects are compared member by member
// and lists element by element. At most so many places are listed.
export function diff(before, after, most = 200) {
  const found = [];
  compare(before, after, "", found, most);
  return found;
}

function compare(before, after, at, found, most) {
  if (found.length >= most || equal(before, after)) return;
  if (before === undefined || after === undefined) {
    found.push({ pointer: at, kind: before === undefined ? "added" : "removed", before, after });
  } else if (isObject(before) && isObject(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      compare(member(before, name), member(after, name), pointer(at, name), found, most);
    }
  } else if (Array.isArray(before) && Array.isArray(after)) {
    for (let i = 0; i < Math.max(before.length, after.length) && found.length < most; i++) {
      compare(before[i], after[i], pointer(at, i), found, most);
    }
  } else {
    found.push({ pointer: at, kind: "changed", before, after });
  }
}

// member is an object's own member; undefined if it has none of the name.
export function member(object, name) {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}
