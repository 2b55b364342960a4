// Reading again what did not come: a server that has too much to do, or a proxy
// before it, refuses a request that it would take a moment later.

const first = 500,
  longest = 30_000, // milliseconds between two tries, unless the answer says how long
  ten = 600_000; // that is not believed to be longer

// patiently calls f until it holds, and returns what it returned. Between two
// tries failed is told of the error, whose again is then true. An error that
// asking again does not mend is thrown, and that nobody wants the answer any more.
export async function patiently(f, signal, failed) {
  for (let pause = first; ; pause = Math.min(2 * pause, longest)) {
    const begun = performance.now();
    try {
      return await f();
    } catch (err) {
      signal.throwIfAborted();
      if (!passes(err)) throw err;
      failed(Object.assign(err, { again: true }));
      const wanted = Math.min(1000 * (err.retryAfter || 0), ten),
        took = performance.now() - begun; // what took long is not pressed
      await wait(Math.max(pause, wanted, took), signal);
    }
  }
}

// passes reports whether an error may be none in a while.
function passes(err) {
  return err.code === "unreachable" || [429, 502, 503, 504].includes(err.status);
}

function wait(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const end = () => (clearTimeout(timer), reject(signal.reason));
    const timer = setTimeout(() => (signal.removeEventListener("abort", end), resolve()), milliseconds);
    signal.addEventListener("abort", end, { once: true });
  });
}
