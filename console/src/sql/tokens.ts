/** Lexer for SQL text in the editor. It accepts every text: an unterminated token ends at the end of the text. */

export type TokenKind =
  | "word"
  | "quoted"
  | "string"
  | "number"
  | "comment"
  | "parameter"
  | "operator"
  | "semicolon"
  | "open"
  | "close"
  | "comma"
  | "dot";

export interface Token {
  kind: TokenKind;
  from: number;
  to: number;
}

const WORD = /[\p{L}_][\p{L}\p{N}_$]*/uy;
const NUMBER = /(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)[a-z]*/iy;
const SPACE = /\s+/y;
const PARAMETER = /\$\d+|[:@][A-Za-z_]\w*/y;
const DOLLAR_TAG = /\$(?:[A-Za-z_]\w*)?\$/y;
const OPERATOR = /::|:=|<=|>=|<>|!=|\|\||->>|->|[-+*/%<>=!~^&|?#@:$[\]{}\\]/y;
const SINGLE: Record<string, TokenKind> = { ";": "semicolon", "(": "open", ")": "close", ",": "comma", ".": "dot" };

function end(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : -1;
}

/** Returns the end of a text in quotes, where a doubled quote stands for one. */
function quotedEnd(text: string, at: number, quote: string, hasEscapes: boolean): number {
  for (let i = at + 1; i < text.length; i++) {
    if (hasEscapes && text[i] === "\\") i++;
    else if (text[i] === quote) {
      if (text[i + 1] !== quote) return i + 1;
      i++;
    }
  }
  return text.length;
}

function blockCommentEnd(text: string, at: number): number {
  let depth = 0;
  for (let i = at; i < text.length; i++) {
    if (text.startsWith("/*", i)) [depth, i] = [depth + 1, i + 1];
    else if (text.startsWith("*/", i)) {
      [depth, i] = [depth - 1, i + 1];
      if (depth === 0) return i + 1;
    }
  }
  return text.length;
}

function lineEnd(text: string, at: number): number {
  const newline = text.indexOf("\n", at);
  return newline < 0 ? text.length : newline;
}

function dollarQuotedEnd(text: string, at: number): number {
  const bodyAt = end(DOLLAR_TAG, text, at);
  if (bodyAt < 0) return -1;
  const close = text.indexOf(text.slice(at, bodyAt), bodyAt);
  return close < 0 ? text.length : close + bodyAt - at;
}

function tokenAt(text: string, at: number): Token {
  const token = (kind: TokenKind, to: number): Token => ({ kind, from: at, to });
  const c = text[at] as string;
  if (c === "'") return token("string", quotedEnd(text, at, "'", false));
  if ((c === "E" || c === "e") && text[at + 1] === "'") return token("string", quotedEnd(text, at + 1, "'", true));
  if (c === '"' || c === "`") return token("quoted", quotedEnd(text, at, c, false));
  if (text.startsWith("--", at)) return token("comment", lineEnd(text, at));
  if (text.startsWith("/*", at)) return token("comment", blockCommentEnd(text, at));
  const single = SINGLE[c];
  if (single !== undefined) return token(single, at + 1);
  let to = dollarQuotedEnd(text, at);
  if (to > 0) return token("string", to);
  if ((to = end(NUMBER, text, at)) > 0) return token("number", to);
  if ((to = end(WORD, text, at)) > 0) return token("word", to);
  if (!text.startsWith("::", at) && (to = end(PARAMETER, text, at)) > 0) return token("parameter", to);
  if ((to = end(OPERATOR, text, at)) > 0) return token("operator", to);
  return token("operator", at + 1);
}

/** Returns all tokens of `text`, comments included, without white space. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const afterSpace = end(SPACE, text, at);
    if (afterSpace > 0) {
      at = afterSpace;
      continue;
    }
    const token = tokenAt(text, at);
    tokens.push(token);
    at = token.to;
  }
  return tokens;
}
