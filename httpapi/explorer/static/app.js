// <twin-explorer> is the whole page: its head, the view that the address names,
// and the status bar.

import "./actors.js";
import "./deadletters.js";
import "./entitytable.js";
import "./entityview.js";
import "./help.js";
import "./podlist.js";
import "./statusbar.js";
import "./tokendialog.js";
import { h, icon, icons, setAttributes } from "./dom.js";
import { visible } from "./format.js";
import { formatRoute, here, isStep } from "./route.js";
import { applyTheme, nextTheme, theme } from "./theme.js";
import { token } from "./token.js";

const elements = { pods: "pod-list", pod: "entity-table", entity: "entity-view", actors: "actor-tree", deadletters: "dead-letters" };

const sections = [
  ["pods", "Pods"],
  ["actors", "Actors"],
  ["deadletters", "Dead letters"],
];

class TwinExplorer extends HTMLElement {
  connectedCallback() {
    this.main = h("main", { id: "view", tabindex: "-1" });
    this.links = sections.map(([view, text]) => h("a", { href: formatRoute({ view }), "data-nav": view }, text));
    this.theme = h("button", { class: "quiet", "data-action": "theme", click: () => this.switchTheme() });
    this.forget = h(
      "button",
      {
        class: "quiet",
        "data-action": "forget-token",
        title: "Forget the token",
        "aria-label": "Forget the token",
        hidden: true,
        click: () => forget(),
      },
      icon(icons.key),
    );
    this.help = document.createElement("help-overlay");
    this.append(
      h("a", { class: "skip", href: "#view", click: (e) => this.skip(e) }, "Skip to the content"),
      h(
        "header",
        { class: "top" },
        h(
          "a",
          { class: "brand", href: formatRoute({ view: "pods" }), "aria-label": "twinsrv: all pods" },
          logo(),
          h("span", {}, "twinsrv"),
        ),
        h("nav", { "aria-label": "Views" }, this.links),
        h(
          "div",
          { class: "tools" },
          this.forget,
          this.theme,
          h(
            "button",
            { class: "quiet", "data-action": "help", title: "Keyboard and more (?)", "aria-label": "Help", click: () => this.help.open() },
            icon(icons.help),
          ),
        ),
      ),
      this.main,
      document.createElement("status-bar"),
      this.help,
      document.createElement("token-dialog"),
    );
    addEventListener("hashchange", () => this.show(true));
    addEventListener("keydown", (e) => this.key(e));
    token.addEventListener("change", () => (this.forget.hidden = !token.known));
    this.forget.hidden = !token.known;
    this.showTheme();
    this.show(false);
  }

  // show shows what the address names. A view that is there already is only told
  // where in it to go.
  show(moved) {
    const route = here();
    const what = [route.view, route.pod, route.name].join("\0");
    for (const link of this.links) {
      const own = link.dataset.nav === route.view || (link.dataset.nav === "pods" && (route.view === "pod" || route.view === "entity"));
      setAttributes(link, { "aria-current": own ? "page" : null });
    }
    document.title = titleOf(route);
    if (this.what === what) return this.view.show(route);
    this.what = what;
    this.view = [route.pod, route.name].some(isStep) ? nowhere() : document.createElement(elements[route.view]);
    this.view.dataset.state = "loading";
    this.main.dataset.view = route.view;
    this.main.replaceChildren(this.view);
    this.view.show(route);
    if (moved) {
      scrollTo(0, 0);
      this.main.focus({ preventScroll: true });
    }
  }

  skip(event) {
    event.preventDefault();
    this.main.focus();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const typing = event.target.closest?.("input:not([type=checkbox]):not([type=radio]), textarea, select");
    if (typing || document.querySelector("dialog[open]")) return;
    if (event.key === "?") this.help.open();
    else if (event.key === "/" && this.view.focusFilter) this.view.focusFilter();
    else if (event.key >= "1" && event.key <= "3") this.links[Number(event.key) - 1].click();
    else return;
    event.preventDefault();
  }

  switchTheme() {
    nextTheme();
    this.showTheme();
  }

  showTheme() {
    const now = theme();
    applyTheme();
    this.theme.replaceChildren(icon(icons[now]));
    const text = { system: "Colours as in the system", light: "Light colours", dark: "Dark colours" }[now];
    setAttributes(this.theme, { title: text, "aria-label": text + "; switch" });
  }
}

// forget ends all that was begun with the token, and begins anew without it.
function forget() {
  token.give("");
  location.reload();
}

function titleOf(route) {
  const place = {
    pods: "Pods",
    actors: "Actors",
    deadletters: "Dead letters",
    pod: route.pod,
    entity: `${visible(route.name ?? "")} – ${route.pod}`,
  };
  return `${place[route.view]} – twinsrv`;
}

// nowhere stands where an address leads to nothing that could be asked for.
function nowhere() {
  const text = "The page cannot show what is called . or .., since addresses take these for steps.";
  const view = h("p", { class: "notice" }, text);
  view.show = () => (view.dataset.state = "failed");
  return view;
}

function logo() {
  return h("img", { src: new URL("icon.svg", import.meta.url), alt: "", width: 26, height: 26 });
}

customElements.define("twin-explorer", TwinExplorer);
document.body.append(document.createElement("twin-explorer"));
