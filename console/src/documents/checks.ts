/** Checks of JSON that may come from another browser, an older console or a file. */

type JsonObject = Record<string, unknown>;

export function objectAt(value: unknown, place: string): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`${place} is not an object`);
  return value as JsonObject;
}

export function listAt(value: unknown, place: string): unknown[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new Error(`${place} is not a list`);
  return value;
}

export function textAt(value: unknown, place: string, fallback: string): string {
  if (value === undefined) return fallback;
  if (typeof value !== "string") throw new Error(`${place} is not a text`);
  return value;
}

/** Returns an integer within bounds. */
export function integerAt(value: unknown, place: string, [lo, hi]: [number, number], fallback: number): number {
  if (value === undefined) return fallback;
  if (typeof value !== "number" || !Number.isFinite(value)) throw new Error(`${place} is not a number`);
  return Math.max(lo, Math.min(hi, Math.round(value)));
}

export function oneOf<T extends string | number>(value: unknown, place: string, allowed: readonly T[], fallback: T): T {
  if (value === undefined) return fallback;
  if (!allowed.includes(value as T)) throw new Error(`${place} is not one of ${allowed.join(", ")}`);
  return value as T;
}
