import { HighlightStyle, StreamLanguage, syntaxHighlighting, type StringStream } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { tags } from "@lezer/highlight";
import { functions, keywords } from "../state/schema.ts";
import { STATIC_KEYWORDS, TYPES } from "../sql/words.ts";

interface State {
  /** End of a token that spans lines: the text that closes it, or undefined. */
  close: string | undefined;
  style: string;
}

let words: { source: unknown; map: Map<string, string> } | undefined;

/** Returns the style of each known word; built again when the server has sent its words. */
function wordStyles(): Map<string, string> {
  const source = functions.peek();
  if (words?.source === source) return words.map;
  const map = new Map<string, string>();
  for (const { name } of source) map.set(name.toLowerCase(), "function");
  for (const word of STATIC_KEYWORDS) map.set(word.toLowerCase(), "keyword");
  // Words that are also names of columns are keywords and types only in capital letters.
  for (const word of keywords.peek()) map.set(word, "keyword");
  for (const type of TYPES) map.set(type, "typeName");
  for (const word of ["true", "false", "null"]) map.set(word, "atom");
  words = { source, map };
  return map;
}

function readUntilClose(stream: StringStream, state: State): string {
  const close = state.close as string;
  while (!stream.eol()) {
    if (stream.match(close)) {
      if (close.length === 1 && stream.peek() === close) {
        stream.next();
        continue;
      }
      state.close = undefined;
      break;
    }
    stream.next();
  }
  return state.style;
}

function begin(stream: StringStream, state: State, close: string, style: string): string {
  state.close = close;
  state.style = style;
  return readUntilClose(stream, state);
}

function wordStyle(word: string, stream: StringStream): string | null {
  const style = wordStyles().get(word) ?? wordStyles().get(word.toLowerCase());
  const isCall = stream.match(/^\s*\(/, false) !== null;
  if (style === "function") return isCall ? "function" : null;
  if (style === undefined) return isCall ? "function" : null;
  if (style === "keyword" && /^(timestamp|first|last|year|month|day|hour|minute|second)$/i.test(word) && isCall)
    return "function";
  return style;
}

function token(stream: StringStream, state: State): string | null {
  if (state.close !== undefined) return readUntilClose(stream, state);
  if (stream.eatSpace()) return null;
  if (stream.match("--")) {
    stream.skipToEnd();
    return "comment";
  }
  if (stream.match("/*")) return begin(stream, state, "*/", "comment");
  if (stream.match("'")) return begin(stream, state, "'", "string");
  if (stream.match('"')) return begin(stream, state, '"', "quotedName");
  if (stream.match("`")) return begin(stream, state, "`", "quotedName");
  const tag = stream.match(/^\$(?:[A-Za-z_]\w*)?\$/) as RegExpMatchArray | null;
  if (tag) return begin(stream, state, tag[0], "string");
  if (stream.match(/^\d[\w.]*/)) return "number";
  if (stream.match(/^(?:\$\d+|@[A-Za-z_]\w*|:(?:from|to)\b)/i)) return "variable";
  const word = stream.match(/^[\p{L}_][\p{L}\p{N}_$]*/u) as RegExpMatchArray | null;
  if (word) return wordStyle(word[0], stream);
  if (stream.match(/^[-+*/%<>=!~^&|:]+/)) return "operator";
  stream.next();
  return "punctuation";
}

const language = StreamLanguage.define<State>({
  name: "tidalite-sql",
  startState: () => ({ close: undefined, style: "" }),
  copyState: (state) => ({ ...state }),
  token,
  tokenTable: {
    quotedName: tags.special(tags.string),
    variable: tags.variableName,
    function: tags.function(tags.variableName),
  },
  languageData: {
    commentTokens: { line: "--", block: { open: "/*", close: "*/" } },
    closeBrackets: { brackets: ["(", "[", "'", '"'] },
  },
});

const style = HighlightStyle.define([
  { tag: tags.keyword, class: "tok-keyword" },
  { tag: tags.string, class: "tok-string" },
  { tag: tags.special(tags.string), class: "tok-name" },
  { tag: tags.number, class: "tok-number" },
  { tag: tags.atom, class: "tok-number" },
  { tag: tags.comment, class: "tok-comment" },
  { tag: tags.typeName, class: "tok-type" },
  { tag: tags.variableName, class: "tok-parameter" },
  { tag: tags.function(tags.variableName), class: "tok-function" },
  { tag: tags.operator, class: "tok-operator" },
  { tag: tags.punctuation, class: "tok-operator" },
]);

export const sqlLanguage: Extension = [language, syntaxHighlighting(style)];
