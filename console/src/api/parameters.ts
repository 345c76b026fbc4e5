import type { ParameterValue } from "./exec.ts";

/**
 * Returns the typed value of a parameter that was entered as text.
 *
 * Integers, numbers, `true`, `false` and `null` have their own types; all else, and what stands in single quotes, is
 * text. The server converts text to timestamps where a timestamp is compared.
 */
export function parameterValue(text: string): ParameterValue {
  const trimmed = text.trim();
  if (/^null$/i.test(trimmed)) return ["null"];
  if (/^(true|false)$/i.test(trimmed)) return ["boolean", trimmed.toLowerCase() === "true"];
  if (/^-?\d{1,19}$/.test(trimmed)) return ["long", trimmed];
  if (/^-?(\d+\.\d*|\.\d+|\d+)(e[+-]?\d+)?$/i.test(trimmed)) return ["double", trimmed];
  const quoted = /^'(.*)'$/s.exec(trimmed);
  return ["text", quoted ? (quoted[1] as string).replaceAll("''", "'") : text];
}
