import type { ComponentChildren, JSX } from "preact";
import type { Cell } from "../api/exec.ts";
import { cellText, timeText } from "../results/cells.ts";
import { formatBytes, formatCount } from "./format.ts";

export type RowObject = Record<string, Cell>;

export interface DataColumn {
  /** Name of the field. */
  field: string;
  title: string;
  /** How values are shown; plain text if it is left out. */
  as?: "count" | "bytes" | "time" | "code" | "ms";
}

function shown(value: Cell, as: DataColumn["as"]): ComponentChildren {
  if (value === null || value === undefined) return <span class="muted">–</span>;
  switch (as) {
    case "count":
      return formatCount(Number(value));
    case "bytes":
      return formatBytes(Number(value));
    case "ms":
      return Number(value).toFixed(1);
    case "time":
      return timeText(cellText(value)).slice(0, 19);
    case "code":
      return <code>{cellText(value).replace(/\s+/g, " ")}</code>;
    default:
      return cellText(value);
  }
}

interface DataTableProps {
  label: string;
  columns: DataColumn[];
  rows: RowObject[];
  empty: string;
  /** A last cell with commands. */
  action?: (row: RowObject) => JSX.Element;
}

/** A plain table for lists of the console itself. */
export function DataTable({ label, columns, rows, empty, action }: DataTableProps): JSX.Element {
  if (rows.length === 0) return <p class="muted table-empty">{empty}</p>;
  const isRight = (column: DataColumn): boolean => column.as === "count" || column.as === "bytes" || column.as === "ms";
  return (
    <div class="data-table" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.field} scope="col" class={isRight(column) ? "right" : ""}>
                {column.title}
              </th>
            ))}
            {action && (
              <th scope="col">
                <span class="visually-hidden">Commands</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {columns.map((column) => (
                <td key={column.field} class={isRight(column) ? "right" : ""}>
                  {shown(row[column.field] ?? null, column.as)}
                </td>
              ))}
              {action && <td class="actions">{action(row)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
