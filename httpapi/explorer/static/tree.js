// Keys in trees: one of its items can be reached by Tab, and the arrows lead from
// it to the others.

// treeKeys handles a key in a tree. An item has the role treeitem; it is opened
// and closed by its method open, if it has one.
export function treeKeys(event, tree) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const item = event.target.closest("[role=treeitem]");
  if (event.target !== item) return;
  const all = [...tree.querySelectorAll("[role=treeitem]")].filter((i) => i.getClientRects().length > 0),
    now = all.indexOf(item);
  const expanded = item.getAttribute("aria-expanded");
  let to = item;
  switch (event.key) {
    case "ArrowDown":
      to = all[now + 1];
      break;
    case "ArrowUp":
      to = all[now - 1];
      break;
    case "Home":
      to = all[0];
      break;
    case "End":
      to = all.at(-1);
      break;
    case "ArrowRight":
      if (expanded === "false") item.open(true);
      else if (expanded === "true") to = all[now + 1];
      break;
    case "ArrowLeft":
      if (expanded === "true") item.open(false);
      else to = item.parentElement.closest("[role=treeitem]");
      break;
    case "Enter":
    case " ":
      if (expanded === null) return;
      item.open(expanded === "false");
      break;
    default:
      return;
  }
  event.preventDefault();
  event.stopPropagation();
  if (to) focusItem(to, tree);
}

// focusItem makes an item the one that Tab reaches, and goes there.
export function focusItem(item, tree) {
  for (const other of tree.querySelectorAll('[tabindex="0"][role=treeitem]')) other.tabIndex = -1;
  item.tabIndex = 0;
  item.focus();
}
