import { objectAt, textAt } from "./checks.ts";
import type { DocumentKind } from "./documents.ts";

/** Version of the file format. */
const FORMAT = 1;

/** Returns the file of a document. */
export function exportText(kind: DocumentKind, name: string, body: unknown): string {
  return `${JSON.stringify({ tidalite: kind, format: FORMAT, name, body }, null, 2)}\n`;
}

/** Reads the file of a document; throws an error that says what is wrong with it. */
export function importText<T>(
  kind: DocumentKind,
  text: string,
  parse: (json: unknown) => T,
): { name: string; body: T } {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Error("the file is not JSON");
  }
  const file = objectAt(json, "the file");
  if (file["tidalite"] !== kind) throw new Error(`the file is not a ${kind} of Tidalite`);
  if (file["format"] !== FORMAT) throw new Error(`the file has format ${String(file["format"])}, not ${FORMAT}`);
  return { name: textAt(file["name"], "name", kind).trim() || kind, body: parse(file["body"]) };
}
