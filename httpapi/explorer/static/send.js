// Sending a message to an entity, and waiting for what becomes of it.

import { get, path, request } from "./api.js";

// send sends a message and returns its answer: {status, etag, value}. With async
// the server takes it and answers later; waiting is called when it has taken it.
// absent says that there must be no entity yet.
export async function send(entity, message, body, { id, async, absent, signal, waiting = () => {} }) {
  const headers = {};
  if (!/^[\x20-\x7e]*$/.test(id ?? "")) {
    const detail = "a message id has letters, digits and signs of ASCII alone; nothing was sent";
    throw Object.assign(new Error(detail), { status: 400, code: "malformed", detail });
  }
  if (id) headers["Idempotency-Key"] = id;
  if (absent) headers["If-None-Match"] = "*";
  if (async) headers.Prefer = "respond-async";
  const answer = await request("POST", entity + path`/messages/${message}`, { body, headers, signal });
  if (answer.status !== 202) return answer;
  waiting();
  const future = answer.location.replace(/^\//, "");
  for (;;) {
    const now = await get(future, { wait: "20s" }, { signal });
    if (now.status === "pending") continue;
    if (now.status === "done") return { status: 200, etag: now.etag, value: now.result, future: now.id };
    const problem = now.problem ?? {
      status: 504,
      code: "outcome_unknown",
      detail: `the answer was not waited for to the end (${now.status}); the message may have been handled`,
    };
    throw Object.assign(new Error(problem.detail), problem);
  }
}
