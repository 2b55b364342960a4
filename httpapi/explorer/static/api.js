// Requests to the server's API, at addresses relative to the page's own, so that
// the page also works behind a proxy that serves it below a prefix.

import { parse, stringify } from "./json.js";
import { isStep } from "./route.js";
import { token } from "./token.js";

// base is where the API is: the page's files are in a folder of it.
export const base = new URL("..", import.meta.url);

// Problem is an answer that says what is wrong.
export class Problem extends Error {
  constructor(problem, retryAfter) {
    super(problem.detail ?? problem.title ?? "the server answered " + problem.status);
    Object.assign(this, { status: problem.status, code: problem.code ?? "", line: problem.line, column: problem.column });
    this.violations = problem.violations ?? [];
    this.retryAfter = retryAfter;
  }
}

// Unreachable says that there was no answer.
export class Unreachable extends Error {
  constructor(cause) {
    super("the server does not answer", { cause });
    this.code = "unreachable";
    this.status = 0;
  }
}

// path makes a path of a template, with its values encoded as one segment each. It
// fails where that would be the path of something else.
export function path(parts, ...values) {
  const step = values.find(isStep);
  if (step) throw new Problem({ status: 0, code: "bad_name", detail: `a name cannot be ${step} here: addresses take that for a step` });
  return parts.reduce((text, part, i) => text + encodeURIComponent(values[i - 1]) + part);
}

// entityPath is the path of an entity.
export function entityPath(pod, name) {
  return path`v1/pods/${pod}/entities/${name}`;
}

function address(to, query) {
  const url = new URL(to, base);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
  }
  return url;
}

// open sends a request and returns the fetched Response once it is no refusal. If
// the server wants a token, it waits for the user to give one.
export async function open(method, to, { query, headers = {}, body, signal } = {}) {
  for (;;) {
    const mine = token.header;
    let answer;
    try {
      answer = await fetch(address(to, query), {
        method,
        headers: { ...headers, ...mine },
        body,
        signal,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
      });
    } catch (err) {
      if (err.name === "AbortError") throw err;
      throw new Unreachable(err);
    }
    if (answer.ok) return answer;
    const problem = await problemOf(answer);
    if (answer.status !== 401) throw problem;
    await token.ask(mine, problem.message);
    signal?.throwIfAborted();
  }
}

async function problemOf(answer) {
  let said = {};
  try {
    said = await answer.json();
  } catch {
    // It is not of twinsrv: a proxy's, say.
  }
  const retry = Number(answer.headers.get("Retry-After"));
  return new Problem(
    { ...said, status: answer.status, title: said.title ?? `the server answered ${answer.status} ${answer.statusText}` },
    retry,
  );
}

// request sends a request and reads the answer, which is JSON or nothing. A body
// that is no text is sent as JSON.
export async function request(method, to, options = {}) {
  const headers = { Accept: "application/json", ...options.headers };
  let body = options.body;
  if (body !== undefined) {
    headers["Content-Type"] ??= "application/json";
    if (typeof body !== "string") body = stringify(body);
  }
  const answer = await open(method, to, { ...options, headers, body });
  let text;
  try {
    text = await answer.text();
  } catch (err) {
    if (err.name === "AbortError") throw err;
    throw new Unreachable(err);
  }
  return {
    status: answer.status,
    etag: answer.headers.get("ETag"),
    location: answer.headers.get("Location"),
    date: answer.headers.get("Date"),
    value: text ? parse(text) : undefined,
  };
}

// get reads a value.
export async function get(to, query, options) {
  return (await request("GET", to, { ...options, query })).value;
}
