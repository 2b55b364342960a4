// Scales of charts: where a number stands, and which numbers to write beside.

const nice = [1, 2, 2.5, 5, 10],
  largest = Number.MAX_VALUE; // all of it stays below, also what lies between such numbers

// ticks are round numbers between two, about so many.
export function ticks(low, high, about) {
  if (!(high > low)) return [low];
  const some = Math.max(1, about),
    rough = high / some - low / some,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = power * nice.find((n) => n * power >= rough * 0.999999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= Math.min(high + step * 1e-9, largest) && found.length < 100; i++)
    found.push(Number((i * step).toPrecision(12)));
  return found;
}

// range is what an axis spans to show numbers: a little more than they do, and
// something also where all are the same.
export function range(numbers) {
  let low = Infinity,
    high = -Infinity;
  for (const n of numbers) [low, high] = [Math.min(low, n), Math.max(high, n)];
  if (low > high) return [0, 1];
  const pad = low === high ? Math.abs(low) * 0.05 || 1 : high * 0.06 - low * 0.06;
  return [Math.max(low - pad, -largest), Math.min(high + pad, largest)];
}

// linear maps numbers from one range to another.
export function linear([from, to], [start, end]) {
  const part = Number.isFinite(to - from) ? 1 : 0.25,
    span = to * part - from * part;
  return (n) => (span === 0 ? start : start + (end - start) * ((n * part - from * part) / span));
}

const spans = [
  1, 5, 10, 50, 100, 250, 500, 1e3, 2e3, 5e3, 15e3, 30e3, 6e4, 12e4, 3e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5,
  2592e6, 7776e6, 31536e6,
];

// timeTicks are times between two, at most about so many, at round distances from
// the zone's midnight.
export function timeTicks(low, high, about) {
  const step = spans.find((s) => (high - low) / s <= about) ?? spans.at(-1);
  const zone = new Date(low).getTimezoneOffset() * 60_000,
    found = [];
  for (let t = Math.ceil((low - zone) / step) * step + zone; t <= high && found.length < 100; t += step) found.push(t);
  return found;
}

// timeText writes a time beside an axis that spans so much.
export function timeText(t, span) {
  const d = new Date(t),
    two = (n) => String(n).padStart(2, "0");
  if (span < 5_000) return `${two(d.getMinutes())}:${two(d.getSeconds())}.${String(d.getMilliseconds()).padStart(3, "0")}`;
  if (span < 3_600_000) return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  if (span < 2 * 86_400_000) return `${two(d.getHours())}:${two(d.getMinutes())}`;
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
}
