/**
 * Parser for a part of Markdown: headings, paragraphs, lists, quotes, code, tables, rules, emphasis, links.
 *
 * The result is a tree that is shown as elements, never as HTML: tags in the text stay text.
 */

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong" | "em" | "del"; children: Inline[] }
  | { kind: "link"; href: string; children: Inline[] };

export type Block =
  | { kind: "heading"; level: number; children: Inline[] }
  | { kind: "paragraph"; children: Inline[] }
  | { kind: "code"; text: string }
  | { kind: "quote"; children: Block[] }
  | { kind: "list"; isOrdered: boolean; items: Block[][] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

const FENCE = /^(```|~~~)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}([-*_])( *\1){2,} *$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
/** Nested quotes and lists beyond this depth stay text. */
const DEPTH_MAX = 8;

// Each part has a bounded length, so that the time of a search grows with the length of the text and not with its square.
const INLINE =
  /(`{1,3})([^`]|[^`][\s\S]{0,1000}?[^`])\1(?!`)|\*\*(?=\S)([\s\S]{0,1000}?\S)\*\*(?!\*)|\*(?![\s*])((?:[^*]|\*\*[^*]{1,1000}\*\*){1,1000})(?<!\s)\*(?!\*)|(?<!\w)_(?=\S)([\s\S]{0,1000}?\S)_(?!\w)|~~(?=\S)([\s\S]{0,1000}?\S)~~|\[([^\]]{0,1000})\]\(([^()\s]{1,2000})\)|\\([!-/:-@[-`{-~])/;

/** Returns a target of a link that runs no script, otherwise `undefined`. */
export function safeTarget(target: string): string | undefined {
  return /^(https?:\/\/|mailto:|#|\/(?!\/))/i.test(target) ? target : undefined;
}

/** Parses emphasis, code and links of a text. */
export function parseInline(text: string): Inline[] {
  const parts: Inline[] = [];
  let rest = text;
  const add = (plain: string): void => {
    const last = parts.at(-1);
    if (last?.kind === "text") last.text += plain;
    else if (plain !== "") parts.push({ kind: "text", text: plain });
  };
  for (let found = INLINE.exec(rest); found; found = INLINE.exec(rest)) {
    const [all, , code, strong, star, under, del, label, target, escaped] = found;
    add(rest.slice(0, found.index));
    const em = star ?? under;
    const href = target === undefined ? undefined : safeTarget(target);
    if (code !== undefined) parts.push({ kind: "code", text: code.trim() });
    else if (strong !== undefined) parts.push({ kind: "strong", children: parseInline(strong) });
    else if (em !== undefined) parts.push({ kind: "em", children: parseInline(em) });
    else if (del !== undefined) parts.push({ kind: "del", children: parseInline(del) });
    else if (href !== undefined) parts.push({ kind: "link", href, children: parseInline(label ?? "") });
    else add(escaped ?? all);
    rest = rest.slice(found.index + all.length);
  }
  add(rest);
  return parts;
}

function rowOf(line: string): Inline[][] {
  return line
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => parseInline(cell.trim().replaceAll("\\|", "|")));
}

/** Lines of a text that are read from the start to the end. */
class Lines {
  at = 0;
  constructor(private readonly lines: string[]) {}

  get current(): string | undefined {
    return this.lines[this.at];
  }

  get following(): string | undefined {
    return this.lines[this.at + 1];
  }

  /** Takes lines as long as a test holds. */
  take(test: (line: string) => boolean): string[] {
    const start = this.at;
    while (this.current !== undefined && test(this.current)) this.at += 1;
    return this.lines.slice(start, this.at);
  }
}

function parseCode(lines: Lines): Block {
  const fence = FENCE.exec(lines.current ?? "")?.[0] ?? "```";
  lines.at += 1;
  const text = lines.take((line) => !line.startsWith(fence)).join("\n");
  lines.at += 1;
  return { kind: "code", text };
}

function parseList(lines: Lines, depth: number): Block {
  const [, indent = "", marker = ""] = ITEM.exec(lines.current ?? "") ?? [];
  const isOrdered = /\d/.test(marker);
  const items: Block[][] = [];
  for (let item = ITEM.exec(lines.current ?? ""); item; item = ITEM.exec(lines.current ?? "")) {
    const isSame = item[1]?.length === indent.length && /\d/.test(item[2] ?? "") === isOrdered;
    if (!isSame) break;
    lines.at += 1;
    const inner = lines.take((line) => line.trim() !== "" && line.search(/\S/) > indent.length);
    const width = inner.length === 0 ? 0 : Math.min(...inner.map((line) => line.search(/\S/)));
    items.push(parseBlocks([item[3] ?? "", ...inner.map((line) => line.slice(width))], depth + 1));
  }
  return { kind: "list", isOrdered, items };
}

function isTable(lines: Lines): boolean {
  return (lines.current ?? "").includes("|") && TABLE_RULE.test(lines.following ?? "");
}

function parseTable(lines: Lines): Block {
  const head = rowOf(lines.current ?? "");
  lines.at += 2;
  return { kind: "table", head, rows: lines.take((line) => line.includes("|")).map(rowOf) };
}

function startsBlock(line: string): boolean {
  return [FENCE, HEADING, RULE, ITEM, QUOTE].some((pattern) => pattern.test(line));
}

function parseParagraph(lines: Lines): Block {
  const first = lines.current ?? "";
  lines.at += 1;
  const rest = lines.take((line) => line.trim() !== "" && !startsBlock(line));
  return { kind: "paragraph", children: parseInline([first, ...rest].join("\n")) };
}

function parseBlock(lines: Lines, depth: number): Block {
  const line = lines.current ?? "";
  if (FENCE.test(line)) return parseCode(lines);
  const [, marks, title] = HEADING.exec(line) ?? [];
  if (marks !== undefined) {
    lines.at += 1;
    return { kind: "heading", level: marks.length, children: parseInline(title ?? "") };
  }
  if (RULE.test(line)) {
    lines.at += 1;
    return { kind: "rule" };
  }
  if (depth < DEPTH_MAX && QUOTE.test(line)) {
    const quoted = lines.take((quote) => QUOTE.test(quote)).map((quote) => QUOTE.exec(quote)?.[1] ?? "");
    return { kind: "quote", children: parseBlocks(quoted, depth + 1) };
  }
  if (depth < DEPTH_MAX && ITEM.test(line)) return parseList(lines, depth);
  return isTable(lines) ? parseTable(lines) : parseParagraph(lines);
}

function parseBlocks(source: string[], depth: number): Block[] {
  const lines = new Lines(source);
  const blocks: Block[] = [];
  while (lines.current !== undefined) {
    if (lines.current.trim() === "") lines.at += 1;
    else blocks.push(parseBlock(lines, depth));
  }
  return blocks;
}

/** Parses a text in Markdown. */
export function parseMarkdown(text: string): Block[] {
  return parseBlocks(text.replaceAll("\r\n", "\n").split("\n"), 0);
}
