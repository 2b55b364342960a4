// Three-way merging of states: what both made of the state that they began with.

import { member } from "./diff.js";
import { equal, isObject } from "./json.js";
import { pointer } from "./paths.js";

// places lists where theirs or yours is another than the base: {pointer, base,
// theirs, yours, both}. both says that both have changed the place, to different
// values, so that somebody has to choose. Lists are one place each: what has
// moved in them nobody knows.
export function places(base, theirs, yours) {
  const found = [];
  walk(base, theirs, yours, "", (place) => found.push(place));
  return found;
}

// merged is the state with what either changed. choices says, by their pointers,
// whose value is taken where both did: "theirs" or "yours".
export function merged(base, theirs, yours, choices) {
  return walk(base, theirs, yours, "", (place) => {
    if (!place.both) return equal(place.base, place.theirs) ? place.yours : place.theirs;
    return place[choices.get(place.pointer)];
  });
}

function walk(base, theirs, yours, at, decide) {
  if (equal(theirs, yours)) return theirs;
  if (isObject(theirs) && isObject(yours) && (base === undefined || isObject(base))) {
    const made = Object.create(null);
    for (const name of new Set([...Object.keys(theirs), ...Object.keys(yours)])) {
      const value = walk(
        isObject(base) ? member(base, name) : undefined,
        member(theirs, name),
        member(yours, name),
        pointer(at, name),
        decide,
      );
      if (value !== undefined) made[name] = value;
    }
    return made;
  }
  const both = !equal(base, theirs) && !equal(base, yours);
  return decide({ pointer: at, base, theirs, yours, both });
}
