import type { JSX } from "preact";
import { DataTable, type RowObject } from "../ui/data-table.tsx";
import { formatCount } from "../ui/format.ts";
import type { ImportReport } from "./send.ts";

const REJECTED = [
  { field: "line", title: "Line", as: "count" as const },
  { field: "column", title: "Column" },
  { field: "reason", title: "Reason" },
  { field: "record", title: "Record", as: "code" as const },
];

/** Outcome of an import: rows, columns with errors, and the records that were left out. */
export function Report({
  report,
  table,
  onQuery,
}: {
  report: ImportReport;
  table: string;
  onQuery: () => void;
}): JSX.Element {
  const bad = [...(report.rejected ?? []), ...(report.nulled ?? [])].slice(0, 200) as unknown as RowObject[];
  return (
    <section class="import-report" aria-label="Result of the import">
      <p class="report-line">
        <span class={report.rowsRejected + report.valuesNulled > 0 ? "dot idle" : "dot done"} />
        <strong>
          {formatCount(report.rowsImported)} {report.rowsImported === 1 ? "row" : "rows"} imported into {table}
        </strong>
        <span class="muted">
          {formatCount(report.rowsRejected)} rejected · {formatCount(report.valuesNulled ?? 0)} values set to NULL
        </span>
        <button class="button" onClick={onQuery}>
          Show rows
        </button>
      </p>
      {bad.length > 0 && (
        <>
          <h2>Rejected records and values</h2>
          <DataTable label="Rejected records" columns={REJECTED} rows={bad} empty="" />
        </>
      )}
    </section>
  );
}
