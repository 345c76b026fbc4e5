import { tokenize, type Token } from "./tokens.ts";

/** A table that a statement names, and the name that the statement uses for it. */
export interface TableReference {
  table: string;
  alias: string;
}

const BEFORE_TABLE = new Set(["from", "join", "into", "update", "table"]);
const NO_ALIAS = new Set(
  (
    "on where group order limit sample latest asof lt splice window left right full inner cross join union except " +
    "intersect having set values select tolerance using pivot unpivot timestamp returning qualify align fill range include exclude offset fetch partition"
  ).split(" "),
);

const STATEMENT_WORDS = new Set(
  "select with insert update delete create drop alter explain show values declare truncate".split(" "),
);

function nameOf(sql: string, token: Token | undefined): string | undefined {
  if (!token) return undefined;
  const text = sql.slice(token.from, token.to);
  if (token.kind === "word") return text;
  return token.kind === "quoted" ? text.slice(1, -1) : undefined;
}

/** Returns the tables after FROM, JOIN, INTO, UPDATE and TABLE, and the leading table of a short form such as `t WHERE …`. */
export function tableReferences(sql: string): TableReference[] {
  const tokens = tokenize(sql).filter((token) => token.kind !== "comment");
  const found: TableReference[] = [];
  const add = (at: number): void => {
    const table = nameOf(sql, tokens[at]);
    if (table === undefined || tokens[at + 1]?.kind === "open") return;
    const isExplicit = nameOf(sql, tokens[at + 1])?.toLowerCase() === "as";
    const alias = nameOf(sql, tokens[at + (isExplicit ? 2 : 1)]);
    const hasAlias = alias !== undefined && (isExplicit || !NO_ALIAS.has(alias.toLowerCase()));
    found.push({ table, alias: hasAlias ? alias : table });
  };
  tokens.forEach((token, i) => {
    const word = token.kind === "word" ? sql.slice(token.from, token.to).toLowerCase() : "";
    if (BEFORE_TABLE.has(word)) add(i + 1);
  });
  const first = nameOf(sql, tokens[0])?.toLowerCase() ?? "";
  if (found.length === 0 && !STATEMENT_WORDS.has(first)) add(0);
  return found;
}

/** Kind of name that is expected at a position. */
export type Expectation =
  { kind: "table" } | { kind: "member"; of: string } | { kind: "expression" } | { kind: "none" };

/** Returns the kind of name that may stand at `position`, where a word may have begun. */
export function expectationAt(sql: string, position: number): Expectation {
  const tokens = tokenize(sql.slice(0, position));
  const last = tokens.at(-1);
  const isInside = last !== undefined && last.to === position;
  if (isInside && (last.kind === "comment" || last.kind === "string" || last.kind === "number"))
    return { kind: "none" };
  if (last?.kind === "comment" && !sql.slice(last.to, position).includes("\n") && sql.startsWith("--", last.from))
    return { kind: "none" };
  const before = tokens.filter((token) => token.kind !== "comment");
  if (isInside && (last.kind === "word" || last.kind === "quoted")) before.pop();
  const previous = before.at(-1);
  if (previous?.kind === "dot") {
    const name = nameOf(sql, before.at(-2));
    return name === undefined ? { kind: "none" } : { kind: "member", of: name };
  }
  const word = previous?.kind === "word" ? sql.slice(previous.from, previous.to).toLowerCase() : "";
  return BEFORE_TABLE.has(word) || before.length === 0 ? { kind: "table" } : { kind: "expression" };
}
