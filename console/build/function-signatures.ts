import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Plugin } from "vite";

const MODULE = "virtual:function-signatures";

export type FunctionSignature = [name: string, signature: string, description: string];

/** Splits a row of a Markdown table at unescaped bars. */
function cellsOf(line: string): string[] {
  return line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/** Returns the signatures in the first column of the tables of `docs/functions.md`. */
export function signaturesOf(markdown: string): FunctionSignature[] {
  const found = new Map<string, FunctionSignature>();
  for (const line of markdown.split("\n")) {
    if (!line.startsWith("| `")) continue;
    const [names = "", description = ""] = cellsOf(line);
    for (const [, code = ""] of names.matchAll(/`([^`]+)`/g)) {
      const name = /^([A-Za-z_][A-Za-z0-9_]*)/.exec(code)?.[1];
      if (name === undefined || found.has(name.toLowerCase())) continue;
      found.set(name.toLowerCase(), [name, code, description.replaceAll("`", "")]);
    }
  }
  return [...found.values()];
}

/** Provides the signatures of `docs/functions.md` as a module, so that the documentation is their only source. */
export function functionSignatures(): Plugin {
  const page = resolve(import.meta.dirname, "../../docs/functions.md");
  return {
    name: "function-signatures",
    resolveId: (id) => (id === MODULE ? `\0${MODULE}` : undefined),
    load(id) {
      if (id !== `\0${MODULE}`) return undefined;
      this.addWatchFile(page);
      return `export default ${JSON.stringify(signaturesOf(readFileSync(page, "utf8")))}`;
    },
  };
}
