import { tokenize } from "./tokens.ts";

/** Statements that take no LIMIT. */
const WITHOUT_LIMIT = new Set(["explain", "show", "values", "check"]);
const LIMITS = new Set(["limit", "fetch", "offset"]);
/**
 * Rows up to which an ordered query is limited by SQL: the server then keeps only so many rows. For later rows it
 * would need more memory than to sort all of them.
 */
const ORDERED_ROWS_MAX = 100_000;

/** Returns the words outside of parentheses in lower case. */
function outerWords(sql: string): string[] {
  const words: string[] = [];
  let depth = 0;
  for (const token of tokenize(sql)) {
    if (token.kind === "open") depth += 1;
    else if (token.kind === "close") depth -= 1;
    else if (token.kind === "word" && depth === 0) words.push(sql.slice(token.from, token.to).toLowerCase());
  }
  return words;
}

/**
 * Returns the statement with a LIMIT for the rows after `lo` up to `hi`, which lets the server stop early; `undefined` if
 * the statement has a LIMIT or takes none.
 */
export function limitedQuery(sql: string, lo: number, hi: number): string | undefined {
  const words = outerWords(sql);
  if (WITHOUT_LIMIT.has(words[0] ?? "") || words.some((word) => LIMITS.has(word))) return undefined;
  if (words.includes("order") && hi > ORDERED_ROWS_MAX) return undefined;
  return `${sql}\nLIMIT ${lo}, ${hi}`;
}

/** Returns a query for the number of rows of a statement. */
export function countQuery(sql: string): string {
  return `SELECT count(*) AS n FROM (\n${sql}\n) q`;
}
