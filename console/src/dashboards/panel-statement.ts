import { isReadOnly, namedParameters } from "../sql/statements.ts";
import { resolveRange } from "../sql/time-range.ts";
import { TIME_HINT } from "../state/run.ts";
import { boundStatement, unknownParameters } from "./parameters.ts";
import type { Session } from "./session.ts";

export type BoundStatement = { sql: string } | { waiting: string } | { problem: string; hint?: string };

/** Returns the statement of a panel at this moment, with the values of its parameters. */
export function bound({ sql }: { sql: string }, session: Session, points: number): BoundStatement {
  if (sql.trim() === "") return { problem: "the panel has no statement" };
  if (!isReadOnly(sql)) return { problem: "a panel runs a query; this statement may write" };
  const range = resolveRange(session.range.value, Date.now());
  if ("invalid" in range) return { problem: `${range.invalid} is not a time`, hint: TIME_HINT };
  const literals = session.literals.value;
  const [unknown] = unknownParameters(sql, literals);
  if (unknown !== undefined) return { problem: `the dashboard has no variable :${unknown}` };
  return boundStatement(sql, { literals, range, points });
}

/** Returns a text that changes when the panel needs other rows than before, apart from the time that passes. */
export function statementKey({ sql }: { sql: string }, session: Session): string {
  const names = namedParameters(sql);
  const literals = names.map((name) => session.literals.value.get(name));
  const { from, to } = session.range.value;
  const isTimed = names.some((name) => name === "from" || name === "to" || name === "interval");
  return JSON.stringify([sql, literals, isTimed ? [from, to] : []]);
}
