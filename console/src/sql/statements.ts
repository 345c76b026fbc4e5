import { tokenize, type Token } from "./tokens.ts";

/** A statement of a text, without the comments before it and without its semicolon. */
export interface Statement {
  from: number;
  to: number;
  text: string;
}

/** Splits a text at semicolons outside of strings, quoted names and comments. */
export function splitStatements(text: string): Statement[] {
  const statements: Statement[] = [];
  let tokens: Token[] = [];
  const close = (): void => {
    const [first, last] = [tokens[0], tokens.at(-1)];
    if (first && last) statements.push({ from: first.from, to: last.to, text: text.slice(first.from, last.to) });
    tokens = [];
  };
  for (const token of tokenize(text)) {
    if (token.kind === "semicolon") close();
    else if (token.kind !== "comment") tokens.push(token);
  }
  close();
  return statements;
}

/** Returns the statement at a position: the one around it, otherwise the last one before it on its line, otherwise the next. */
export function statementAt(text: string, position: number): Statement | undefined {
  const statements = splitStatements(text);
  const around = statements.find((s) => s.from <= position && position <= s.to);
  if (around) return around;
  const before = statements.findLast((s) => s.to < position);
  const isOnLine = before !== undefined && !text.slice(before.to, position).includes("\n");
  if (isOnLine) return before;
  return statements.find((s) => s.from > position) ?? before;
}

const WRITES = new Set(
  (
    "insert update delete create drop alter truncate rename copy begin start commit rollback savepoint release set " +
    "backup check cancel refresh vacuum grant revoke lock analyze import merge"
  ).split(" "),
);
const VOLATILE = /^(rnd_\w+|random|gen_random_uuid|uuid|timestamp_shuffle|sleep|pg_sleep)$/;

function wordsOf(sql: string): string[] {
  return tokenize(sql)
    .filter((token) => token.kind === "word")
    .map((token) => sql.slice(token.from, token.to).toLowerCase());
}

/** Returns true if the statement is an INSERT that returns no rows. */
export function isPlainInsert(sql: string): boolean {
  const words = wordsOf(sql);
  return words[0] === "insert" && !words.includes("returning");
}

/**
 * Returns true if the statement changes nothing, as far as its words tell.
 *
 * EXPLAIN ANALYZE runs its statement, and WITH may stand before one that writes.
 */
export function isReadOnly(sql: string): boolean {
  const words = wordsOf(sql);
  const first = words[0];
  if (first === undefined || WRITES.has(first)) return false;
  const mayWrite = /^(explain|with|declare)$/.test(first);
  return !words.some(
    (word) => word === "returning" || (mayWrite && /^(insert|update|delete|merge|analyze)$/.test(word)),
  );
}

/**
 * Returns true if the statement may be sent again to read other pages of the same rows: it changes nothing and calls
 * no function with random results.
 */
export function isRepeatable(sql: string): boolean {
  return isReadOnly(sql) && !wordsOf(sql).some((word) => VOLATILE.test(word));
}

/** Returns the numbers of the parameters `$1`, `$2`, … in ascending order. */
export function positionalParameters(sql: string): number[] {
  const numbers = tokenize(sql)
    .filter((token) => token.kind === "parameter" && sql[token.from] === "$")
    .map((token) => Number(sql.slice(token.from + 1, token.to)));
  return [...new Set(numbers)].sort((a, b) => a - b);
}

/** Returns the parameters `:name` of a statement, in lower case, without their colons. */
export function namedParameters(sql: string): string[] {
  return [...new Set(namedTokens(sql).map(({ name }) => name))];
}

function namedTokens(sql: string): { name: string; token: Token }[] {
  return tokenize(sql)
    .filter((token) => token.kind === "parameter" && sql[token.from] === ":")
    .map((token) => ({ name: sql.slice(token.from + 1, token.to).toLowerCase(), token }));
}

/** Replaces parameters `:name` by SQL text; `textOf` returns `undefined` for a parameter that stays. */
export function withNamedParameters(sql: string, textOf: (name: string) => string | undefined): string {
  let out = "";
  let at = 0;
  for (const { name, token } of namedTokens(sql)) {
    const text = textOf(name);
    if (text === undefined) continue;
    out += sql.slice(at, token.from) + text;
    at = token.to;
  }
  return out + sql.slice(at);
}

/** Returns true if the statement contains the time range parameters `:from` or `:to`. */
export function hasTimeRange(sql: string): boolean {
  return namedParameters(sql).some((name) => name === "from" || name === "to");
}

/** Replaces `:from` and `:to` by timestamp literals. */
export function withTimeRange(sql: string, from: string, to: string): string {
  return withNamedParameters(sql, (name) =>
    name === "from" ? quoteText(from) : name === "to" ? quoteText(to) : undefined,
  );
}

/** Converts a position in characters, as the server counts, to an index of a JavaScript string. */
export function indexOfCharacter(text: string, position: number): number {
  let index = 0;
  for (let left = position; left > 0 && index < text.length; left--) {
    index += (text.codePointAt(index) as number) > 0xffff ? 2 : 1;
  }
  return index;
}

/** Quotes a name if it is not a plain word. */
export function quoteName(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** Returns a query for the rows of a statement in the order of one of its columns. */
export function sortedQuery(sql: string, column: string, isDescending: boolean): string {
  return `SELECT * FROM (\n${sql}\n) ORDER BY ${quoteName(column)}${isDescending ? " DESC" : ""}`;
}

/** Returns a text as an SQL string literal. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
