import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { JSX } from "preact";
import { isAbort } from "../api/http.ts";
import { quoteName } from "../sql/statements.ts";
import { runStatements } from "../state/run.ts";
import { columnsByTable, columnsOf, loadSchema, tables } from "../state/schema.ts";
import { activeTab, openTab } from "../state/tabs.ts";
import { view } from "../state/view.ts";
import { formatBytes } from "../ui/format.ts";
import { Icon } from "../ui/icons.tsx";
import { notify } from "../ui/notice.tsx";
import { Preview, type Choices, type ExistingTable } from "./preview.tsx";
import { Report } from "./report.tsx";
import { importCsv, importOther, kindOf, tableNameOf, type ImportReport } from "./send.ts";

interface State {
  file: File;
  choices: Choices;
  preview: ImportReport | undefined;
  report: ImportReport | undefined;
  summary: string | undefined;
  error: string | undefined;
  isBusy: boolean;
}

const NO_CHOICES = { types: {}, timestamp: "", partitionBy: "", atomicity: "skipCol" as const };

function columnsOption(choices: Choices): string {
  return Object.entries(choices.types)
    .map(([name, type]) => `${quoteName(name)} ${type}`)
    .join(", ");
}

/** Returns the table of a name, if it exists, and reads its columns. */
function existingTable(name: string): ExistingTable | undefined {
  const key = name.toLowerCase();
  const table = tables.value.find((table) => table.name.toLowerCase() === key);
  if (!table) return undefined;
  const columns = columnsByTable.value.get(key);
  if (!columns) void columnsOf(table.name);
  return { name: table.name, rows: table.rows, columns: columns?.map((column) => column.name) };
}

function showRows(table: string): void {
  const sql = `SELECT * FROM ${quoteName(table)}`;
  view.value = "query";
  openTab(`${sql};\n`, table);
  void runStatements(activeTab.peek().id, [{ text: sql, from: 0 }]);
}

/** Import of files: drop, check what was found, import, read the report. */
export function ImportPage(): JSX.Element {
  const state = useSignal<State | undefined>(undefined);
  const isOver = useSignal(false);
  const input = useRef<HTMLInputElement>(null);
  const abort = useRef<AbortController | undefined>(undefined);
  const change = (part: Partial<State>): void => {
    if (state.peek()) state.value = { ...(state.peek() as State), ...part };
  };

  const send = async (isDryRun: boolean): Promise<void> => {
    const { file, choices } = state.peek() as State;
    abort.current?.abort();
    abort.current = new AbortController();
    change({ isBusy: true, error: undefined });
    try {
      if (kindOf(file.name) === "csv") {
        const { table, timestamp, partitionBy, atomicity } = choices;
        const options = { table, timestamp, partitionBy, atomicity, columns: columnsOption(choices), isDryRun };
        const report = await importCsv(file, options, abort.current.signal);
        change(isDryRun ? { preview: report } : { report });
      } else if (!isDryRun) change({ summary: await importOther(file, choices.table, abort.current.signal) });
      if (!isDryRun) void loadSchema();
      change({ isBusy: false });
    } catch (error) {
      if (!isAbort(error)) change({ isBusy: false, error: error instanceof Error ? error.message : String(error) });
    }
  };
  const open = (file: File | undefined): void => {
    if (!file) return;
    const kind = kindOf(file.name);
    const error =
      kind === "unsupported"
        ? "The server reads CSV, line protocol and Arrow streams over HTTP. For Parquet use tidalite import or read_parquet()."
        : undefined;
    const choices = { ...NO_CHOICES, table: tableNameOf(file.name) };
    state.value = { file, choices, preview: undefined, report: undefined, summary: undefined, error, isBusy: false };
    // Another client may have created the table since the schema was read.
    void loadSchema();
    if (kind === "csv") void send(true);
  };
  const choose = (choices: Choices): void => {
    change({ choices });
    void send(true);
  };
  const onDrop = (event: DragEvent): void => {
    event.preventDefault();
    isOver.value = false;
    const files = event.dataTransfer?.files;
    if (files && files.length > 1)
      notify(`${files.length} files were dropped: only ${files[0]?.name} was opened`, true);
    open(files?.[0]);
  };
  const current = state.value;
  return (
    <div class="page">
      <div class="page-body">
        <header class="page-head">
          <h1>Import</h1>
        </header>
        <div
          class={isOver.value ? "drop over" : "drop"}
          onDragOver={(event) => (event.preventDefault(), (isOver.value = true))}
          onDragLeave={() => (isOver.value = false)}
          onDrop={onDrop}
        >
          <Icon name="import" size={26} />
          <p>
            Drop a file here, or{" "}
            <button class="link" onClick={() => input.current?.click()}>
              choose one
            </button>
          </p>
          <p class="muted">CSV or TSV (plain, gzip, zstd), line protocol (.ilp, .lp), Arrow stream (.arrows)</p>
          <input
            ref={input}
            type="file"
            class="visually-hidden"
            aria-label="File to import"
            tabIndex={-1}
            onChange={(event) => open((event.target as HTMLInputElement).files?.[0])}
          />
        </div>
        {current && (
          <>
            <p class="file-line">
              <Icon name="table" size={14} /> <strong>{current.file.name}</strong>{" "}
              <span class="muted">{formatBytes(current.file.size)}</span>
              {current.isBusy && (
                <>
                  <span class="spinner small" />
                  <button class="button small" onClick={() => (abort.current?.abort(), change({ isBusy: false }))}>
                    Cancel
                  </button>
                </>
              )}
            </p>
            {current.error && (
              <p class="error-box" role="alert">
                {current.error}
              </p>
            )}
            {kindOf(current.file.name) !== "unsupported" && !current.report && !current.summary && (
              <Preview
                kind={kindOf(current.file.name)}
                preview={current.preview}
                existing={kindOf(current.file.name) === "lines" ? undefined : existingTable(current.choices.table)}
                choices={current.choices}
                isBusy={current.isBusy}
                onChange={choose}
                onImport={() => void send(false)}
              />
            )}
            {current.summary && (
              <p class="report-line">
                <span class="dot done" /> {current.summary}
              </p>
            )}
            {current.report && (
              <Report
                report={current.report}
                table={current.choices.table}
                onQuery={() => showRows(current.choices.table)}
              />
            )}
          </>
        )}
      </div>
    </div>
  );
}
