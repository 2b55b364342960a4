// <filter-field> takes a filter in CEL and shows what is wrong with it, where.

import { markFault, nameSearch, shortened } from "./celerror.js";
import { h, later, setAttributes } from "./dom.js";

const pause = 300; // milliseconds after a key

// FilterField tells by the events "apply", with the filter, and "leave", when the
// user goes on to what is below.
class FilterField extends HTMLElement {
  connectedCallback() {
    const id = "filter-fault";
    this.input = h("input", {
      type: "text",
      name: "filter",
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      "aria-label": "Filter in CEL",
      "aria-describedby": id,
      placeholder: 'Filter, such as state.celsius > 21.0 && name.startsWith("tower-")',
      input: () => this.typed(),
      keydown: (e) => this.key(e),
    });
    this.fault = h("div", { id, "data-field": "error", role: "status", hidden: true });
    this.append(
      h("div", { class: "field" }, h("span", { class: "hint", "aria-hidden": "true" }, h("kbd", {}, "/")), this.input),
      this.fault,
    );
    this.soon = later(pause, () => this.apply());
    this.applied = "";
    this.dataset.state = "empty";
  }

  disconnectedCallback() {
    this.soon.cancel();
  }

  get value() {
    return this.input.value.trim();
  }

  // set shows a filter that came from elsewhere, unless it is what stands there.
  set(text) {
    if (text === this.applied && this.value === text) return;
    this.applied = text;
    if (this.value !== text) this.input.value = text;
  }

  typed() {
    this.dataset.state = "checking";
    this.soon();
  }

  key(event) {
    if (event.key === "Enter") this.apply();
    else if (event.key === "ArrowDown") this.dispatchEvent(new Event("leave"));
    else if (event.key === "Escape" && this.input.value) {
      this.input.value = "";
      this.apply();
    } else if (event.key === "Escape") this.input.blur();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  apply() {
    this.soon.cancel();
    this.applied = this.value;
    this.dispatchEvent(new CustomEvent("apply", { detail: this.value }));
  }

  // holds says that the filter that was applied can be used.
  holds() {
    this.dataset.state = this.value ? "ok" : "empty";
    this.fault.hidden = true;
    this.fault.replaceChildren();
    setAttributes(this.input, { "aria-invalid": null });
    setAttributes(this.fault, { "data-line": null, "data-column": null });
  }

  // fails shows why it cannot.
  fails(problem) {
    this.dataset.state = "error";
    setAttributes(this.input, { "aria-invalid": "true" });
    setAttributes(this.fault, { "data-line": problem.line ?? null, "data-column": problem.column ?? null });
    const mark = markFault(this.value, problem);
    const place = problem.line > 1 ? `line ${problem.line}, column ${problem.column}` : `column ${problem.column}`;
    this.fault.replaceChildren(
      ...(mark ? [h("code", { "data-field": "caret" }, mark.before, h("mark", {}, mark.at || "\u00a0"), mark.behind)] : []),
      h("p", {}, mark ? h("span", { class: "code" }, place) : null, " ", shortened(problem.message)),
    );
    const filter = problem.code === "bad_filter" ? nameSearch(this.value) : undefined,
      search = () => ((this.input.value = filter), this.input.focus(), this.apply());
    if (filter)
      this.fault.append(h("button", { type: "button", "data-action": "search", click: search }, `Search names that contain “${this.value}”`));
    this.fault.hidden = false;
  }
}

customElements.define("filter-field", FilterField);
