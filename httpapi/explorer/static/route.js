// The place in the page, which stands in the fragment of its address: what is
// shown, and how it is filtered, sorted and paged. The names in it are encoded
// as those in the API's paths are, so that a slash in a name is no slash of the
// place.

const tabs = ["state", "history", "messages"];

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // somebody typed it
  }
}

// parseRoute reads a fragment, with or without its #.
export function parseRoute(fragment) {
  const [place, query = ""] = fragment.replace(/^#?\/?/, "").split(/\?(.*)/s);
  const parts = place.split("/").map(decoded);
  const params = Object.fromEntries(new URLSearchParams(query));
  const [view, pod, name, tab] = parts;
  if (view === "actors" || view === "deadletters") return { view, params };
  if (view !== "pods" || !pod) return { view: "pods", params };
  if (!name) return { view: "pod", pod, params };
  return { view: "entity", pod, name, tab: tabs.includes(tab) ? tab : "state", params };
}

// formatRoute is the fragment of a place. Parameters that are empty are left out.
export function formatRoute({ view, pod, name, tab, params = {} }) {
  let text = "#/" + (view === "pod" || view === "entity" ? "pods/" + encodeURIComponent(pod) : view);
  if (view === "entity") text += "/" + encodeURIComponent(name);
  if (view === "entity" && tab && tab !== "state") text += "/" + tab;
  const query = new URLSearchParams(Object.entries(params).filter(([, v]) => v !== undefined && v !== null && v !== ""));
  return query.size ? `${text}?${query}` : text;
}

// isStep reports whether addresses take a name for a step, encoded or not, so that
// none leads to what has it.
export function isStep(name) {
  return name === "." || name === "..";
}

// here is the place that the page is at. location.hash will not do: some browsers
// decode it.
export function here() {
  const at = location.href.indexOf("#");
  return parseRoute(at < 0 ? "" : location.href.slice(at));
}

// go leads to a place, as a step that the back button takes back.
export function go(route) {
  location.hash = formatRoute(route);
}

// refine changes the parameters of the present place without such a step. The
// view knows what it has changed and is not told.
export function refine(params) {
  const route = here();
  route.params = { ...route.params, ...params };
  history.replaceState(history.state, "", formatRoute(route));
}
