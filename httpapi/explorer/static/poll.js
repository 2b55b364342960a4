// Asking again and again, for figures of a moment.

// poll calls f, and again so many milliseconds after it has ended, until signal
// is aborted. While the tab is in the background it waits.
export async function poll(milliseconds, signal, f) {
  while (!signal.aborted) {
    await f();
    await pause(milliseconds, signal);
    if (document.hidden) await seen(signal);
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener("abort", end);
    function end() {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    }
  });
}

function seen(signal) {
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", end);
    signal.addEventListener("abort", end);
    function end() {
      document.removeEventListener("visibilitychange", end);
      signal.removeEventListener("abort", end);
      resolve();
    }
  });
}
