// A stream of events that comes back by itself where it was cut off, so that no
// change is missed. fetch reads it, since EventSource sends no token.

import { open, Problem } from "./api.js";
import { connection } from "./connection.js";
import { parse } from "./json.js";
import { EventParser } from "./sse.js";

const pauses = [250, 500, 1000, 2000, 4000, 5000];

// Stream tells of events from start to stop:
//
//   on(kind, data, id)  an event, its data parsed
//   opened(fresh)       it is being told from now on; fresh if not from where it
//                       was before: whoever shows a state reads it now, and then
//                       has missed nothing
//   lost(reason)        changes are missing: what is shown is to be read anew
//   failed(problem)     the server refuses the stream, and goes on doing so
export class Stream {
  #to;
  #query;
  #tells;
  #last = undefined; // the id of the last event
  #end = new AbortController();
  #wake = () => {};
  #silence = 45_000;

  constructor(to, query, tells) {
    this.#to = to;
    this.#query = query;
    this.#tells = { on() {}, opened() {}, lost() {}, failed() {}, ...tells };
  }

  start() {
    const wake = () => this.#wake();
    const options = { signal: this.#end.signal };
    for (const name of ["online", "focus"]) addEventListener(name, wake, options);
    document.addEventListener("visibilitychange", () => document.hidden || wake(), options);
    connection.addEventListener("back", wake, options);
    this.#run();
    return this;
  }

  stop() {
    this.#end.abort();
    this.#wake();
    connection.says(this, undefined);
  }

  get stopped() {
    return this.#end.signal.aborted;
  }

  async #run() {
    for (let failures = 0, first = true; !this.stopped;) {
      this.#says({ state: "connecting" });
      let came = 0;
      try {
        await this.#once(() => {
          came = performance.now();
          if (!first) connection.reconnects++;
          first = false;
        });
      } catch (err) {
        if (this.stopped) return;
        this.#refused(err);
      }
      if (this.stopped) return;
      failures = came && performance.now() - came > 1000 ? 0 : failures + 1; // one that is cut at once is not pressed
      await this.#pause(pauses[Math.min(failures, pauses.length - 1)]);
    }
  }

  #says(what) {
    if (!this.stopped) connection.says(this, what);
  }

  #refused(err) {
    if (err.code === "no_such_position") {
      this.#last = undefined; // of another store, or of one that was put back
      connection.gaps++;
      this.#tells.lost("no_such_position");
    } else if (err instanceof Problem && err.status < 500 && err.status !== 429) {
      this.#tells.failed(err);
    }
  }

  async #pause(milliseconds) {
    this.#says({ state: "waiting", retryAt: Date.now() + milliseconds });
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = () => {};
  }

  // once reads one connection to its end.
  async #once(begun) {
    const cut = new AbortController();
    const signal = AbortSignal.any([this.#end.signal, cut.signal]);
    const headers = { Accept: "text/event-stream" };
    if (this.#last !== undefined) headers["Last-Event-ID"] = this.#last;
    const answer = await open("GET", this.#to, { query: this.#query, headers, signal });
    begun();
    this.#says({ state: "connected" });
    // The server has taken its place in the stream before it answers: whatever is
    // read from now on holds all that came before the first event.
    this.#tells.opened(this.#last === undefined);
    const parser = new EventParser(
      (event) => {
        if (event.id !== undefined) connection.lastId = this.#last = event.id;
        if (event.data !== undefined) this.#event(event);
      },
      (comment) => {
        const beat = /^(\d+) ms between heartbeats$/.exec(comment);
        if (beat) this.#silence = Math.max(3 * Number(beat[1]), 5000);
      },
    );
    const reader = answer.body.getReader(),
      text = new TextDecoder();
    for (;;) {
      const silent = setTimeout(() => cut.abort(), this.#silence); // a network that broke says nothing
      const { done, value } = await reader.read().finally(() => clearTimeout(silent));
      if (done || this.stopped) return;
      parser.push(text.decode(value, { stream: true }));
    }
  }

  #event({ event, data, id }) {
    const value = parse(data);
    if (event === "cut") return; // the end says the rest
    if (event === "gap") {
      connection.gaps++;
      this.#tells.lost(value.reason, value);
    }
    if (value.changed) connection.lag = Math.max(0, Date.now() + connection.skew - Date.parse(value.changed));
    this.#tells.on(event, value, id);
    connection.changed();
  }
}
