"use strict";

// Shows the server's OpenAPI document. All of its texts are put in as texts.

const methods = ["get", "put", "post", "patch", "delete"];

function element(name, text, cls) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return e;
}

// resolved follows references, each one once on the way down.
function resolved(doc, schema, seen = []) {
  if (Array.isArray(schema)) return schema.map((s) => resolved(doc, s, seen));
  if (schema === null || typeof schema !== "object") return schema;
  const ref = schema.$ref;
  if (typeof ref === "string" && ref.startsWith("#/")) {
    if (seen.includes(ref)) return { see: ref.split("/").pop() };
    let at = doc;
    for (const part of ref.slice(2).split("/")) at = at?.[part.replaceAll("~1", "/").replaceAll("~0", "~")];
    return resolved(doc, at ?? {}, [...seen, ref]);
  }
  return Object.fromEntries(Object.entries(schema).map(([k, v]) => [k, resolved(doc, v, seen)]));
}

function showContent(doc, into, content) {
  for (const [type, medium] of Object.entries(content ?? {})) {
    into.append(element("code", type));
    const schema = medium.schema ?? medium["x-line-schema"];
    if (!schema || Object.keys(schema).length === 0 || type === "application/problem+json") continue;
    into.append(element("pre", JSON.stringify(resolved(doc, schema), null, 2)));
  }
}

function table(rows) {
  const t = element("table");
  for (const cells of rows) {
    const tr = t.insertRow();
    for (const cell of cells) {
      const td = tr.insertCell();
      td.append(cell);
    }
  }
  return t;
}

function showOperation(doc, path, method, op) {
  const all = element("details");
  all.id = op.operationId;
  const head = element("summary");
  head.append(element("span", method, "method"), element("span", path, "path"), element("span", op.summary ?? "", "says"));
  all.append(head);
  all.addEventListener("toggle", () => {
    if (!all.open || all.childElementCount > 1) return;
    if (op.description) all.append(element("p", op.description));
    if (op.parameters?.length) {
      all.append(element("h3", "Parameters"));
      all.append(table(op.parameters.map((p) => {
        const says = element("span", p.description ?? "");
        return [element("code", p.name), element("span", p.in + (p.required ? ", required" : "")), says];
      })));
    }
    if (op.requestBody) {
      all.append(element("h3", "Body"), element("p", op.requestBody.description ?? ""));
      showContent(doc, all, op.requestBody.content);
    }
    all.append(element("h3", "Answers"));
    for (const [status, answer] of Object.entries(op.responses ?? {})) {
      const says = element("p");
      says.append(element("code", status), " " + answer.description);
      const headers = Object.keys(answer.headers ?? {});
      if (headers.length) says.append(" (" + headers.join(", ") + ")");
      all.append(says);
      showContent(doc, all, answer.content);
    }
  });
  return all;
}

function show(doc) {
  const main = document.getElementById("operations");
  main.replaceChildren();
  const groups = new Map();
  for (const path of Object.keys(doc.paths).sort()) {
    for (const method of methods) {
      const op = doc.paths[path][method];
      if (!op) continue;
      const group = op.tags?.[0] ?? "";
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(showOperation(doc, path, method, op));
    }
  }
  for (const [name, operations] of [...groups].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))) {
    const section = element("section");
    section.append(element("h2", name ? "The pod " + name : "All pods"), ...operations);
    main.append(section);
  }
  if (location.hash) {
    const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (wanted) {
      wanted.open = true;
      wanted.scrollIntoView();
    }
  }
}

async function load(token) {
  const form = document.getElementById("token");
  const answer = await fetch("/openapi.json", { headers: token ? { Authorization: "Bearer " + token } : {} });
  form.hidden = answer.status !== 401;
  if (answer.status === 401) return;
  if (!answer.ok) throw new Error("the server answered " + answer.status);
  show(await answer.json());
}

function failed(err) {
  document.getElementById("operations").replaceChildren(element("p", "The document could not be shown: " + err.message, "failed"));
}

document.getElementById("token").addEventListener("submit", (event) => {
  event.preventDefault();
  load(event.target.querySelector("input").value).catch(failed);
});

document.getElementById("find").addEventListener("input", (event) => {
  const wanted = event.target.value.toLowerCase();
  for (const one of document.querySelectorAll("#operations details")) {
    one.hidden = !one.querySelector("summary").textContent.toLowerCase().includes(wanted);
  }
});

load().catch(failed);
