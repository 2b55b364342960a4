// <status-bar> says how the page is connected: whether the server answers, how
// far the stream lags behind, what the server is and whether its store takes
// writes.

import { base } from "./api.js";
import { connection } from "./connection.js";
import { h, perFrame, setAttributes, setText } from "./dom.js";
import { count, span } from "./format.js";
import { token } from "./token.js";

const calm = 5000,
  pressing = 1000; // between two questions, while the server answers and while it does not

class StatusBar extends HTMLElement {
  connectedCallback() {
    const field = (name, title) => h("span", { "data-field": name, title });
    this.fields = {
      state: field("state"),
      lag: field("lag", "Between the last change and its being shown here"),
      gaps: field("gaps", "Changes that the history does not keep any more; what is shown was read anew"),
      store: field("store"),
      active: field("active", "Entities in the server's memory"),
      version: field("version"),
    };
    this.setAttribute("role", "contentinfo");
    this.said = h("span", { class: "unseen", role: "status", "aria-live": "polite" });
    this.append(h("span", { class: "lamp", "aria-hidden": "true" }), ...Object.values(this.fields), this.said);
    this.draw = perFrame(() => this.show());
    connection.addEventListener("change", this.draw);
    token.addEventListener("ask", this.draw);
    token.addEventListener("change", this.draw);
    this.ticking = setInterval(this.draw, 500);
    this.ask();
    addEventListener("online", () => this.ask());
    document.addEventListener("visibilitychange", () => document.hidden || this.ask());
    this.show();
  }

  // ask asks whether the server takes everything, and what it is. Neither needs a
  // token.
  async ask() {
    clearTimeout(this.timer);
    const mine = (this.asking = {});
    const ready = await answer("readyz");
    const health = ready ? await answer("healthz") : undefined;
    if (mine !== this.asking) return;
    connection.answered(ready !== undefined);
    if (ready) {
      this.ready = ready;
      this.health = health?.value ?? this.health;
      const there = Date.parse(ready.date) - Date.now();
      connection.skew = Math.abs(there) > 2500 ? there : 0; // the header has whole seconds
    }
    this.draw();
    this.timer = setTimeout(() => this.ask(), ready ? calm : pressing);
  }

  show() {
    const { state, retryAt } = token.asked ? { state: "unauthorized" } : connection.state;
    const seconds = Number.isFinite(retryAt) ? Math.max(0, Math.ceil((retryAt - Date.now()) / 1000)) : 0;
    const text = {
      connected: "connected",
      connecting: "connecting",
      unauthorized: "waiting for a token",
      reconnecting: seconds > 0 ? `reconnecting in ${seconds} s` : "reconnecting",
    }[state];
    setAttributes(this, {
      "data-state": state,
      "data-retry-in": state === "reconnecting" ? seconds : null,
      "data-reconnects": connection.reconnects,
      "data-last-id": connection.lastId || null,
    });
    setText(this.fields.state, text);
    if (state !== this.was) setText(this.said, this.was === undefined ? "" : text);
    this.was = state;
    setText(this.fields.lag, connection.lag === undefined ? "" : "lag " + span(connection.lag));
    setAttributes(this.fields.lag, { "data-ms": connection.lag ?? null });
    setText(this.fields.gaps, connection.gaps ? count(connection.gaps) + (connection.gaps === 1 ? " gap" : " gaps") : "");
    this.showServer();
  }

  showServer() {
    const { ready, health } = this;
    setText(this.fields.store, !ready ? "" : `${health?.store ? health.store + " " : ""}store ${ready.ok ? "ready" : "not ready"}`);
    setAttributes(this.fields.store, {
      "data-ready": ready ? String(ready.ok) : null,
      title: ready?.value?.detail ?? "Whether the store takes writes",
    });
    setText(this.fields.active, health?.active === undefined ? "" : count(health.active) + " in memory");
    setText(this.fields.version, health?.version ? "version " + health.version : "");
  }
}

// answer is what the server says at an address that needs no token; undefined if
// it says nothing.
async function answer(to) {
  try {
    const got = await fetch(new URL(to, base), { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(10_000) });
    return { ok: got.ok, value: await got.json(), date: got.headers.get("Date") };
  } catch {
    return undefined;
  }
}

customElements.define("status-bar", StatusBar);
