const DAY = 86_400;

function clock(date: Date, step: number): string {
  const text = date.toISOString();
  if (step < 1) return text.slice(11, 23);
  return step < 60 ? text.slice(11, 19) : text.slice(11, 16);
}

/**
 * Labels of a time axis in UTC with 24 hours. The date stands below the first label and wherever it changes.
 *
 * `splits` are seconds since 1970, `step` is their distance in seconds.
 */
export function timeLabels(splits: number[], step: number): string[] {
  let shown = "";
  return splits.map((seconds) => {
    const date = new Date(seconds * 1000);
    const day = date.toISOString().slice(0, 10);
    if (step >= DAY * 300) return day.slice(0, 4);
    if (step >= DAY * 28) return day.slice(0, 7);
    if (step >= DAY) return day;
    const label = day === shown ? clock(date, step) : `${clock(date, step)}\n${day}`;
    shown = day;
    return label;
  });
}

const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 2 });
const PLAIN = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 8 });

function isTiny(value: number): boolean {
  return value !== 0 && Math.abs(value) < 1e-4;
}

/** Label of a value at an axis, such as `1.5M`. */
export function axisText(value: number): string {
  if (isTiny(value)) return value.toExponential(1);
  return Math.abs(value) >= 1e5 ? COMPACT.format(value) : PLAIN.format(value);
}

/** Value below the chart with up to eight digits. */
export function valueText(value: number): string {
  return isTiny(value) || Math.abs(value) >= 1e15 ? value.toExponential(4) : PLAIN.format(value);
}
