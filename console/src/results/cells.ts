import type { Cell, Column } from "../api/exec.ts";

export type Family = "number" | "time" | "boolean" | "text" | "json";

/** Returns how values of a type are ordered, aligned and drawn. */
export function familyOf(type: string): Family {
  if (/^(BYTE|SHORT|INT|LONG|FLOAT|DOUBLE|DECIMAL.*)$/.test(type)) return "number";
  if (/^(TIMESTAMP|TIMESTAMP_NS|TIMESTAMP_MS|DATE)$/.test(type)) return "time";
  if (type === "BOOLEAN") return "boolean";
  return type === "JSON" || type === "JSONB" || type.endsWith("[]") ? "json" : "text";
}

/** Text of a value for display; NULL and the empty text are marked by the caller. */
export function cellText(value: Cell): string {
  if (value === null) return "NULL";
  if (typeof value === "string") return value;
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

/** Text of a cell, with the `.0` that tells a whole DOUBLE from an integer. */
export function displayText(value: Cell, type: string): string {
  const isWhole = typeof value === "number" && Number.isInteger(value) && Math.abs(value) < 1e15;
  return isWhole && (type === "DOUBLE" || type === "FLOAT") ? value.toFixed(1) : cellText(value);
}

/** Timestamp text as `2024-01-01 00:00:00.123456`, without zeros at the end of the second. */
export function timeText(text: string): string {
  return text.replace("T", " ").replace(/(\.\d*?)0*Z$/, (_, digits: string) => (digits === "." ? "" : digits));
}

/** Number of a value for charts; NaN if the value is no number. Timestamps become seconds since 1970. */
export function numberOf(value: Cell | undefined, family: Family): number {
  if (value === null || value === undefined) return NaN;
  if (family === "time") return Date.parse(String(value).replace(/(\.\d{3})\d+Z$/, "$1Z")) / 1000;
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value === "Infinity") return Infinity;
  if (value === "-Infinity") return -Infinity;
  return typeof value === "number" ? value : value === "NaN" ? NaN : Number(value);
}

function compareNumbers(a: string | number, b: string | number): number {
  if (a === "NaN" || b === "NaN") return Number(a === "NaN") - Number(b === "NaN");
  const areIntegers = /^-?\d+$/.test(String(a)) && /^-?\d+$/.test(String(b));
  if (areIntegers && (typeof a === "string" || typeof b === "string")) {
    const [x, y] = [BigInt(a), BigInt(b)];
    return x < y ? -1 : x > y ? 1 : 0;
  }
  return Number(a) - Number(b);
}

/** Orders two values of a column; NULL is greater than every value, as in PostgreSQL. */
export function compareCells(a: Cell, b: Cell, family: Family): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  if (family === "number") return compareNumbers(a as string | number, b as string | number);
  if (family === "boolean") return Number(a) - Number(b);
  const [x, y] = [cellText(a), cellText(b)];
  return x < y ? -1 : x > y ? 1 : 0;
}

/** Width of a column in pixels for its name and its first values. */
export function columnWidth(column: Column, values: Cell[], charWidth: number): number {
  const family = familyOf(column.type);
  const texts = values.map((value) =>
    family === "time" && value !== null ? timeText(cellText(value)) : displayText(value, column.type),
  );
  const widest = texts.reduce((most, text) => Math.max(most, text.length), 4);
  const header = Math.max(column.name.length + 3, column.type.length + 2);
  return Math.round(Math.min(420, Math.max(64, Math.max(widest, header) * charWidth + 24)));
}
