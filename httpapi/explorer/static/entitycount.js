// <entity-count> says how many entities a pod has, or how many match a filter.

import { get, path } from "./api.js";
import { setAttributes, setText } from "./dom.js";
import { count } from "./format.js";
import { isAbort } from "./problem.js";

const share = 10; // counting takes at most one part in so many of the time

class EntityCount extends HTMLElement {
  connectedCallback() {
    this.dataset.field = "count";
    this.classList.add("muted");
  }

  // show counts. That goes through all of the pod, so that the same is not counted
  // again for each page.
  async show(pod, filter, signal) {
    if (this.filter === filter && Date.now() < this.until) return;
    if (this.filter !== filter) this.say("", null);
    const begun = Date.now();
    this.filter = filter;
    this.until = Infinity;
    try {
      const page = await get(path`v1/pods/${pod}/entities`, { filter, count: true, limit: 1, select: "name", timeout: "60s" }, { signal });
      const [one, many] = filter ? ["matches", "match"] : ["entity", "entities"];
      this.say(`${count(page.count)} ${page.count === 1 ? one : many}`, page.count);
      this.until = Date.now() + share * (Date.now() - begun);
    } catch (err) {
      this.until = 0;
      if (!isAbort(err)) this.say("", null); // the page is there, and says more than a number
    }
  }

  say(text, n) {
    setText(this, text);
    setAttributes(this, { "data-count": n });
  }
}

customElements.define("entity-count", EntityCount);
