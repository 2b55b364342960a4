// The bearer token, for servers that want one. It is kept for this tab alone and
// stands in no address.

const key = "twinsrv.token";

class Token extends EventTarget {
  #value = read();
  #asking = null; // the promise of those who wait for one

  // header is what a request says of itself.
  get header() {
    return this.#value ? { Authorization: "Bearer " + this.#value } : {};
  }

  get known() {
    return this.#value !== "";
  }

  get asked() {
    return this.#asking !== null;
  }

  // ask has the user asked, and waits for what he says. used is the header that
  // was refused; if there is another token by now, it is that.
  ask(used, detail) {
    if ((used.Authorization ?? "") !== (this.header.Authorization ?? "")) return Promise.resolve();
    if (!this.#asking) {
      this.#asking = Promise.withResolvers ? Promise.withResolvers() : resolvers();
      this.dispatchEvent(new CustomEvent("ask", { detail: this.known ? detail : "" }));
    }
    return this.#asking.promise;
  }

  // give takes what the user says.
  give(value) {
    this.#value = value;
    write(value);
    const asking = this.#asking;
    this.#asking = null;
    this.dispatchEvent(new Event("change"));
    asking?.resolve();
  }
}

function resolvers() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

// A browser may refuse to keep anything; then the token lasts as long as the page.
function read() {
  try {
    return sessionStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

function write(value) {
  try {
    if (value) sessionStorage.setItem(key, value);
    else sessionStorage.removeItem(key);
  } catch {
    // It is kept in memory.
  }
}

export const token = new Token();
