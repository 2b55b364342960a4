// Keys in tables: the arrows move the focus over rows, and Enter follows the link
// that a row has.

const page = 10; // rows

// moveFocus handles a key in the body of a table.
export function moveFocus(event, body) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const rows = [...body.querySelectorAll("tr[tabindex]")].filter((r) => !r.hidden);
  const row = event.target.closest("tr"),
    now = rows.indexOf(row),
    last = rows.length - 1;
  const to = {
    ArrowDown: now + 1,
    ArrowUp: now - 1,
    Home: 0,
    End: last,
    PageDown: Math.min(now + page, last),
    PageUp: Math.max(now - page, 0),
  }[event.key];
  if (event.key === "Enter" && event.target === row) row.querySelector("a")?.click();
  else if (to === undefined || rows.length === 0) return;
  else focusRow(rows, Math.min(Math.max(to, 0), last));
  event.preventDefault();
}

function focusRow(rows, i) {
  for (const row of rows) if (row.tabIndex === 0) row.tabIndex = -1;
  rows[i].tabIndex = 0;
  rows[i].focus();
}

// firstRow leads to the first row.
export function firstRow(body) {
  const rows = [...body.querySelectorAll("tr[tabindex]:not([hidden])")];
  if (rows.length > 0) focusRow(rows, 0);
}

// enterable lets the first row be reached by Tab, if none can be yet.
export function enterable(body) {
  if (!body.querySelector('tr[tabindex="0"]')) body.querySelector("tr[tabindex]:not([hidden])")?.setAttribute("tabindex", "0");
}
