import {
  snippetCompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import signatures from "virtual:function-signatures";
import { expectationAt, tableReferences, type TableReference } from "../sql/references.ts";
import { quoteName, statementAt } from "../sql/statements.ts";
import { CLAUSES, STATIC_KEYWORDS, TYPES } from "../sql/words.ts";
import { columnsOf, functions, keywords, tables } from "../state/schema.ts";

const signatureByName = new Map(signatures.map((entry) => [entry[0].toLowerCase(), entry]));

/** Functions that stand where a table stands. */
const TABLE_FUNCTIONS = (
  "tables table_columns table_partitions table_metrics table_storage storage views materialized_views wal_tables " +
  "query_activity statement_statistics functions long_sequence generate_series read_csv read_parquet"
).split(" ");

function tableCompletions(): Completion[] {
  const named = tables.value.map((table) => ({
    label: table.name,
    apply: quoteName(table.name),
    type: table.kind === "table" ? "class" : "interface",
    detail: table.kind,
    boost: 20,
  }));
  const made = TABLE_FUNCTIONS.map((name) => functionCompletion(name, "table function"));
  return [...named, ...made];
}

function functionCompletion(name: string, kind: string): Completion {
  const [, signature, description] = signatureByName.get(name.toLowerCase()) ?? [name, "", ""];
  const hasNoArguments = signature === `${name}()` || (signature === "" && kind === "table function");
  return {
    ...snippetCompletion(hasNoArguments ? `${name}()` : `${name}(\${})`, { label: name }),
    type: "function",
    detail: signature.slice(name.length) || kind,
    ...(description ? { info: `${signature}\n${description}` } : {}),
  };
}

let functionList: { source: unknown; list: Completion[] } | undefined;

function functionCompletions(): Completion[] {
  const source = functions.value;
  if (functionList?.source !== source) {
    const list = source.map(({ name, type }) => ({
      ...functionCompletion(name, type),
      boost: signatureByName.has(name.toLowerCase()) ? 0 : -5,
    }));
    functionList = { source, list };
  }
  return functionList.list;
}

function keywordCompletions(): Completion[] {
  const words = new Set([...STATIC_KEYWORDS, ...keywords.value]);
  const common = new Set(STATIC_KEYWORDS);
  const plain = [...words].map((label) => ({ label, type: "keyword", boost: common.has(label) ? -1 : -20 }));
  const clauses = CLAUSES.map(({ label, template, detail }) =>
    snippetCompletion(template, { label, detail, type: "keyword", boost: 2 }),
  );
  const types = TYPES.map((label) => ({ label, type: "type", boost: -10 }));
  return [...clauses, ...plain, ...types];
}

async function columnCompletions(references: TableReference[]): Promise<Completion[]> {
  const lists = await Promise.all(
    references.map(async ({ table }) =>
      (await columnsOf(table)).map((column) => ({
        label: column.name,
        apply: quoteName(column.name),
        type: "property",
        detail: references.length > 1 ? `${column.type} · ${table}` : column.type,
        boost: 30,
      })),
    ),
  );
  const byLabel = new Map(lists.flat().map((completion) => [completion.label, completion]));
  return [...byLabel.values()];
}

/** Completion source for SQL: tables after FROM and JOIN, otherwise columns, functions, clauses and keywords. */
export async function completeSql(context: CompletionContext): Promise<CompletionResult | null> {
  const text = context.state.doc.toString();
  const word = context.matchBefore(/[\p{L}_][\p{L}\p{N}_]*/u);
  const statement = statementAt(text, context.pos) ?? { from: 0, text, to: text.length };
  const isWithin = statement.from <= context.pos;
  const sql = isWithin ? text.slice(statement.from, Math.max(statement.to, context.pos)) : "";
  const expected = expectationAt(sql, isWithin ? context.pos - statement.from : 0);
  if (expected.kind === "none") return null;
  if (!word && !context.explicit && expected.kind !== "member") return null;
  const from = word?.from ?? context.pos;
  const validFor = /^[\p{L}\p{N}_]*$/u;
  const references = tableReferences(sql);
  if (expected.kind === "member") {
    const name = expected.of.toLowerCase();
    const reference = references.filter((r) => r.alias.toLowerCase() === name || r.table.toLowerCase() === name);
    return { from, validFor, options: await columnCompletions(reference.slice(0, 1)) };
  }
  if (expected.kind === "table") {
    const starts = sql.slice(0, context.pos - statement.from).trim() === (word?.text ?? "");
    return { from, validFor, options: starts ? [...keywordCompletions(), ...tableCompletions()] : tableCompletions() };
  }
  const options = [
    ...(await columnCompletions(references)),
    ...functionCompletions(),
    ...keywordCompletions(),
    ...tableCompletions().slice(0, 200),
  ];
  return { from, validFor, options };
}
