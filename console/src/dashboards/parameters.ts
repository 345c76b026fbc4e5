import { parameterValue } from "../api/parameters.ts";
import { sampleStep } from "../charts/reduce.ts";
import { familyOf } from "../results/cells.ts";
import { namedParameters, quoteText, withNamedParameters } from "../sql/statements.ts";
import { rangeSeconds, type TimeRange } from "../sql/time-range.ts";
import type { Variable } from "./model.ts";

/** Values of a list variable and the type of their column. */
export interface ValueList {
  values: string[];
  type: string;
}

/** Returns the SQL literal of a text as `$1` reads it: numbers, true, false and null stand for themselves. */
export function literalOf(text: string): string {
  const [type, value] = parameterValue(text);
  if (type === "null") return "NULL";
  return type === "text" ? quoteText(value) : String(value);
}

/** Returns the SQL literal of the value of a variable. */
export function variableLiteral(variable: Variable, value: string, list: ValueList | undefined): string {
  if (variable.kind === "text") return literalOf(value);
  const family = familyOf(list?.type ?? "");
  return family === "number" || family === "boolean" ? literalOf(value) : quoteText(value);
}

export interface ParameterContext {
  /** Literals by lower-case name; `undefined` for a list that is not read yet. */
  literals: ReadonlyMap<string, string | undefined>;
  /** Timestamps of SQL. */
  range: TimeRange;
  /** Width of the panel in pixels: `:interval` gives at most one bucket of SAMPLE BY for each. */
  points: number;
}

/** Returns the statement with the values of its parameters, or the reason why it cannot run yet. */
export function boundStatement(sql: string, context: ParameterContext): { sql: string } | { waiting: string } {
  const waiting = namedParameters(sql).find(
    (name) => context.literals.has(name) && context.literals.get(name) === undefined,
  );
  if (waiting !== undefined) return { waiting: `waiting for the list of :${waiting}` };
  return { sql: withNamedParameters(sql, (name) => textOf(name, context)) };
}

function textOf(name: string, { literals, range, points }: ParameterContext): string | undefined {
  switch (name) {
    case "from":
      return quoteText(range.from);
    case "to":
      return quoteText(range.to);
    case "interval":
      return sampleStep(rangeSeconds(range), points);
    default:
      return literals.get(name);
  }
}

/** Returns the parameters of a statement that no variable has. */
export function unknownParameters(sql: string, literals: ReadonlyMap<string, unknown>): string[] {
  const known = new Set(["from", "to", "interval", ...literals.keys()]);
  return namedParameters(sql).filter((name) => !known.has(name));
}
