import { hoverTooltip, type Tooltip } from "@codemirror/view";
import signatures from "virtual:function-signatures";
import { tableReferences } from "../sql/references.ts";
import { statementAt } from "../sql/statements.ts";
import { columnsOf, tables } from "../state/schema.ts";
import { formatCount } from "../ui/format.ts";

const byName = new Map(signatures.map((entry) => [entry[0].toLowerCase(), entry]));

/** Returns the description of a name in a statement: a column, a table or a function. */
async function describe(name: string, sql: string): Promise<string | undefined> {
  const lower = name.toLowerCase();
  for (const { table } of tableReferences(sql)) {
    const column = (await columnsOf(table)).find((candidate) => candidate.name.toLowerCase() === lower);
    if (column) return `${table}.${column.name} ${column.type}${column.isDesignated ? ", designated timestamp" : ""}`;
  }
  const table = tables.peek().find((candidate) => candidate.name.toLowerCase() === lower);
  if (table) return `${table.kind} ${table.name}, ${formatCount(table.rows)} rows`;
  const [, signature, description] = byName.get(lower) ?? [];
  return signature && `${signature}\n${description}`;
}

/** Shows types of columns and signatures of functions under the pointer. */
export const hoverDescription = hoverTooltip(async (view, position): Promise<Tooltip | null> => {
  const word = view.state.wordAt(position);
  if (!word) return null;
  const statement = statementAt(view.state.doc.toString(), position);
  const text = await describe(view.state.sliceDoc(word.from, word.to), statement?.text ?? "");
  if (!text) return null;
  const dom = document.createElement("div");
  dom.className = "hover-description";
  dom.textContent = text;
  return { pos: word.from, end: word.to, above: true, create: () => ({ dom }) };
});
