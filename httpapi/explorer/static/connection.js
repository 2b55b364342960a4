// What the page knows of its connection to the server: the streams that are open
// or waiting, whether requests get answers, and how far the streams lag behind.

class Connection extends EventTarget {
  #streams = new Map(); // what each says of itself
  #answers = undefined; // whether the last request that asked after the server got an answer
  reconnects = 0;
  gaps = 0;
  lag = undefined; // milliseconds between the newest change and its being told
  skew = 0; // milliseconds by which the server's clock is ahead
  lastId = "";

  // says notes what a stream, or with undefined that it is no more.
  says(stream, what) {
    if (what === undefined) this.#streams.delete(stream);
    else this.#streams.set(stream, what);
    this.changed();
  }

  // answered notes whether the server answers. Streams that wait are told when it
  // does so again.
  answered(does) {
    const again = does && this.#answers === false;
    this.#answers = does;
    if (again) this.dispatchEvent(new Event("back"));
    this.changed();
  }

  // state is that of the worst of all: whoever looks wants to know that something
  // is missing.
  get state() {
    const all = [...this.#streams.values()];
    if (all.some((s) => s.state === "waiting") || this.#answers === false) {
      return { state: "reconnecting", retryAt: Math.min(...all.filter((s) => s.retryAt).map((s) => s.retryAt)) };
    }
    if (all.some((s) => s.state === "connecting") || this.#answers === undefined) return { state: "connecting" };
    return { state: "connected" };
  }

  changed() {
    this.dispatchEvent(new Event("change"));
  }
}

export const connection = new Connection();
