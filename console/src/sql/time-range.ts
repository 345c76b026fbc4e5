/** Time ranges as a user enters them, and the timestamps that `:from` and `:to` stand for. */

/** Texts such as `now-15m`, `now` and `2024-01-01 12:30`; an empty text is no bound. */
export interface TimeRange {
  from: string;
  to: string;
}

export const ALL_TIMES: TimeRange = { from: "", to: "" };

export const RELATIVE_RANGES: [from: string, label: string][] = [
  ["now-1m", "Last minute"],
  ["now-5m", "Last 5 minutes"],
  ["now-15m", "Last 15 minutes"],
  ["now-1h", "Last hour"],
  ["now-6h", "Last 6 hours"],
  ["now-24h", "Last 24 hours"],
  ["now-7d", "Last 7 days"],
  ["now-30d", "Last 30 days"],
];

const EARLIEST = "1970-01-01T00:00:00.000000Z";
const LATEST = "2200-01-01T00:00:00.000000Z";
/** Digits that a shortened timestamp leaves out. */
const ZEROS = "0000-01-01T00:00:00.000000Z";

const RELATIVE = /^now(?:\s*([+-])\s*(\d{1,6})\s*([smhdwMy]))?$/;
const ABSOLUTE = /^\d{4}(-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,6})?)?)?)?)?)?Z?$/;
const UNIT_MS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

function shifted(now: number, sign: number, count: number, unit: string): number {
  const length = UNIT_MS[unit];
  if (length !== undefined) return now + sign * count * length;
  const date = new Date(now);
  date.setUTCMonth(date.getUTCMonth() + sign * count * (unit === "y" ? 12 : 1));
  return date.getTime();
}

/** Returns the timestamp of SQL that a text stands for; `undefined` if the text is no time. `now` is in milliseconds. */
export function resolveTime(text: string, now: number): string | undefined {
  const trimmed = text.trim();
  const [isRelative, sign, count, unit] = RELATIVE.exec(trimmed) ?? [];
  if (isRelative !== undefined) {
    const ms = unit ? shifted(now, sign === "-" ? -1 : 1, Number(count), unit) : now;
    return Number.isFinite(new Date(ms).getTime()) ? new Date(ms).toISOString().replace("Z", "000Z") : undefined;
  }
  if (!ABSOLUTE.test(trimmed)) return undefined;
  const given = trimmed.replace("Z", "").replace(" ", "T");
  const full = given + ZEROS.slice(given.length);
  return Number.isNaN(Date.parse(full)) ? undefined : full;
}

/** Returns the timestamps of a range, or the text that is no time. */
export function resolveRange(range: TimeRange, now: number): TimeRange | { invalid: string } {
  const from = range.from.trim() === "" ? EARLIEST : resolveTime(range.from, now);
  const to = range.to.trim() === "" ? LATEST : resolveTime(range.to, now);
  if (from === undefined) return { invalid: range.from };
  return to === undefined ? { invalid: range.to } : { from, to };
}

/** Length of a range of timestamps in seconds. */
export function rangeSeconds(range: TimeRange): number {
  return (Date.parse(range.to) - Date.parse(range.from)) / 1000;
}

/** Text of a range for people. */
export function rangeLabel(range: TimeRange): string {
  if (range.from === "" && range.to === "") return "All times";
  const known = RELATIVE_RANGES.find(([from]) => from === range.from);
  if (known && range.to === "now") return known[1];
  return `${shortText(range.from) || "start"} – ${shortText(range.to) || "end"}`;
}

function shortText(text: string): string {
  return text.replace("T", " ").replace(/(:\d\d)\.?0*Z$/, "$1");
}
