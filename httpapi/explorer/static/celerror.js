// Where in a filter its fault is.

// markFault cuts a text into what stands before a fault, the sign at it, and what
// stands behind, all in the line of the fault; undefined if the problem does not
// say where. Lines and columns count from 1, columns in characters.
export function markFault(text, { line, column }) {
  if (!line || !column) return undefined;
  const signs = [...(text.split("\n")[line - 1] ?? "")];
  const at = Math.min(column - 1, signs.length);
  return { before: signs.slice(0, at).join(""), at: signs[at] ?? "", behind: signs.slice(at + 1).join("") };
}

// nameSearch is a filter for the names that contain a text which is no filter;
// undefined if the text looks like the beginning of one.
export function nameSearch(text) {
  return text && !/["'()=<>!&|?{}[\]\n]/.test(text) ? `name.contains(${JSON.stringify(text)})` : undefined;
}

// shortened leaves out of a problem's text what stands elsewhere: that it is the
// filter, and where in it.
export function shortened(detail) {
  return detail
    .split("; line ")[0]
    .replace(/^filter: (line \d+, column \d+: )?/, "")
    .trim();
}
