import type { Column, Row } from "../api/exec.ts";
import { cellText, familyOf } from "./cells.ts";
import { quoteName, quoteText } from "../sql/statements.ts";

/** Rows as text for the clipboard. */
export type TextFormat = "TSV" | "CSV" | "JSON" | "Markdown" | "SQL values";

export const TEXT_FORMATS: TextFormat[] = ["TSV", "CSV", "JSON", "Markdown", "SQL values"];

function csvField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvRow(row: Row): string {
  return row.map((cell) => (cell === null ? "" : cell === "" ? '""' : csvField(cellText(cell)))).join(",");
}

function tsvRow(row: Row): string {
  return row.map((cell) => (cell === null ? "" : cellText(cell).replaceAll(/[\t\r\n]/g, " "))).join("\t");
}

function markdownRow(cells: string[]): string {
  return `| ${cells.map((text) => text.replaceAll("|", "\\|").replaceAll(/\r?\n/g, " ")).join(" | ")} |`;
}

/** JSON objects by column name; integers keep all digits as numbers. */
function jsonRow(columns: Column[], row: Row): string {
  const fields = columns.map((column, i) => {
    const cell = row[i] ?? null;
    const isInteger = typeof cell === "string" && familyOf(column.type) === "number" && /^-?\d+(\.\d+)?$/.test(cell);
    return `${JSON.stringify(column.name)}:${isInteger ? cell : JSON.stringify(cell)}`;
  });
  return `{${fields.join(",")}}`;
}

function sqlValue(column: Column, cell: Row[number]): string {
  if (cell === null) return "NULL";
  const isPlain =
    (familyOf(column.type) === "number" && /^-?[\d.]+(e[+-]?\d+)?$/i.test(cellText(cell))) || typeof cell === "boolean";
  return isPlain ? cellText(cell) : quoteText(cellText(cell));
}

function markdown(columns: Column[], rows: Row[]): string {
  const rule = columns.map((column) => (familyOf(column.type) === "number" ? "---:" : "---"));
  const body = rows.map((row) => markdownRow(row.map((cell) => (cell === null ? "" : cellText(cell)))));
  return [markdownRow(columns.map((column) => column.name)), `| ${rule.join(" | ")} |`, ...body].join("\n");
}

/** Returns rows as text. TSV of the clipboard has no header, so that cells can be pasted into sheets. */
export function formatRows(format: TextFormat, columns: Column[], rows: Row[]): string {
  switch (format) {
    case "TSV":
      return rows.map(tsvRow).join("\n");
    case "CSV":
      return [csvRow(columns.map((column) => column.name)), ...rows.map(csvRow)].join("\r\n");
    case "JSON":
      return `[\n${rows.map((row) => `  ${jsonRow(columns, row)}`).join(",\n")}\n]`;
    case "Markdown":
      return markdown(columns, rows);
    case "SQL values": {
      const names = columns.map((column) => quoteName(column.name)).join(", ");
      const values = rows.map((row) => `  (${row.map((cell, i) => sqlValue(columns[i] as Column, cell)).join(", ")})`);
      return `INSERT INTO t (${names}) VALUES\n${values.join(",\n")};`;
    }
  }
}
