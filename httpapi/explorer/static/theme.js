// The colours: those of the system, unless the user wants others in this
// browser.

const key = "twinsrv.theme";
const all = ["system", "light", "dark"];
let now = kept();

function kept() {
  try {
    const value = localStorage.getItem(key);
    return all.includes(value) ? value : "system";
  } catch {
    return "system"; // the browser keeps nothing
  }
}

// theme is the one that is wanted.
export function theme() {
  return now;
}

// nextTheme goes on to the next one.
export function nextTheme() {
  now = all[(all.indexOf(now) + 1) % all.length];
  try {
    localStorage.setItem(key, now);
  } catch {
    // It lasts as long as the page.
  }
}

// applyTheme has the style sheet use it.
export function applyTheme() {
  if (now === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = now;
}
