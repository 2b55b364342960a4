// An entity as the page knows it: its present state, kept so by a stream, and
// what the stream has told of it.

import { entityPath, request } from "./api.js";
import { patiently } from "./patience.js";
import { isAbort } from "./problem.js";
import { Stream } from "./stream.js";

const most = 1000; // events that are kept while a state is being read

// Twin tells of itself by events: "load" when it was read, "change" with {kind,
// data, before} when the stream told of a change, "fail" with an error.
export class Twin extends EventTarget {
  exists = undefined; // until it is known
  seen = 0; // changes that the stream told of
  missed = 0; // revisions that it did not
  #early = []; // what is told before the state was read

  constructor(pod, name) {
    super();
    Object.assign(this, { pod, name, path: entityPath(pod, name) });
  }

  start() {
    this.stream = new Stream(
      this.path + "/watch",
      {},
      {
        opened: (fresh) => (fresh || this.exists === undefined) && this.load(),
        lost: () => this.load(),
        on: (kind, data) => this.#told(kind, data),
        failed: (problem) => this.#tell("fail", problem),
      },
    ).start();
  }

  stop() {
    this.stream?.stop();
    this.loading?.abort();
  }

  get etag() {
    return `"${this.life}-${this.revision}"`;
  }

  // load reads the present state, and goes on trying where that may help: until it
  // is read, nothing else is shown.
  async load() {
    this.loading?.abort();
    const { signal } = (this.loading = new AbortController());
    try {
      const read = () => request("GET", this.path, { signal });
      this.#set(true, (await patiently(read, signal, (err) => this.#tell("fail", err))).value);
    } catch (err) {
      if (isAbort(err)) return;
      if (err.code !== "no_such_entity") return this.#tell("fail", err);
      this.exists = false;
    }
    this.loading = undefined;
    this.#tell("load");
    const early = this.#early;
    this.#early = [];
    for (const [kind, data] of early) this.#told(kind, data);
  }

  #set(exists, { life, revision, changed, state }) {
    Object.assign(this, { exists, life, revision, changed, state });
  }

  #told(kind, data) {
    if (kind === "gap") return;
    if (this.loading) {
      this.#early.push([kind, data]);
      if (this.#early.length > most) this.#early.shift(); // the newest say what it is now; missed counts the others
      return;
    }
    if (data.life < this.life || (data.life === this.life && data.revision <= this.revision)) return;
    const before = this.exists ? this.state : undefined;
    if (data.life === this.life) this.missed += data.revision - this.revision - 1;
    this.seen++;
    this.#set(kind !== "deleted", data);
    this.#tell("change", { kind, data, before });
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
