// Elements made by calls. Data comes in as texts and attributes alone, so that
// nothing of it is ever taken for markup.

const svgSpace = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "style") for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    else if (name === "value" || name === "checked" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(2)) if (child !== undefined && child !== null && child !== false) element.append(child);
  return element;
}

// h makes an element. An attribute whose value is a function is a listener for
// the event of that name; true is an attribute without a value; false, null and
// undefined leave it out, and leave children out as well.
export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

// svg is h for drawings.
export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(svgSpace, name), attributes, children);
}

// setAttributes sets attributes, or removes those that are null or false.
export function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value === true ? "" : value)) element.setAttribute(name, value === true ? "" : value);
  }
}

// setText changes a text only if it is another, so that selections and readers
// of screens are not disturbed.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// flash marks an element as fresh for a moment. It begins anew if it is called
// again meanwhile.
export function flash(element) {
  element.classList.remove("flash");
  void element.offsetWidth; // has the browser notice, or the animation would go on
  element.classList.add("flash");
  clearTimeout(element.flashing);
  element.flashing = setTimeout(() => element.classList.remove("flash"), 1600);
}

// perFrame returns a function that has f called once in the next frame, however
// often it is called before.
export function perFrame(f) {
  let queued = false;
  return () => {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => {
      queued = false;
      f();
    });
  };
}

// later returns a function that calls f when it has not been called for a while.
export function later(milliseconds, f) {
  let timer = 0;
  const call = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...values), milliseconds);
  };
  call.cancel = () => clearTimeout(timer);
  return call;
}

// icon draws a sign of 16 by 16 from the path of its lines.
export function icon(path) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" }, svg("path", { d: path }));
}

// icons are the paths of the page's signs.
export const icons = {
  help: "M8 14.5a6.5 6.5 0 1 1 0-13 6.5 6.5 0 0 1 0 13ZM6 6.2a2 2 0 1 1 2.8 1.9c-.5.2-.8.6-.8 1.1v.4M8 11.6v.2",
  system: "M2 3.5h12v7.5H2zM6 13.5h4M8 11v2.5",
  light: "M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6ZM8 1.2v1.4M8 13.4v1.4M1.2 8h1.4M13.4 8h1.4M3.2 3.2l1 1M11.8 11.8l1 1M3.2 12.8l1-1M11.8 4.2l1-1",
  dark: "M13.5 9.6A6 6 0 0 1 6.4 2.5a6 6 0 1 0 7.1 7.1Z",
  key: "M10.5 2a3.5 3.5 0 1 1-3.2 4.9L2 12.2V14h2.2v-1.6h1.6v-1.6h1.5l1.2-1.2",
  plus: "M8 3v10M3 8h10",
  trash: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.5 8.500h6l.5-8.500",
  edit: "M3 13l.7-2.700L10.500 3.500l2 2L5.700 12.300ZM9.300 4.700l2 2",
  left: "M10 3 5 8l5 5",
  right: "M6 3l5 5-5 5",
  columns: "M2.500 3h11v10h-11zM6.200 3v10M9.800 3v10",
  close: "M4 4l8 8M12 4l-8 8",
  reload: "M13 8a5 5 0 1 1-1.500-3.600M13 2.500v2.500h-2.500",
  send: "M2.500 8 13.500 3l-3.500 10-2.500-4.200ZM7.500 8.800l6-5.800",
  pause: "M5.500 3.500v9M10.500 3.500v9",
  play: "M5 3.500l7 4.500-7 4.500z",
};
