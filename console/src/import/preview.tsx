import type { JSX } from "preact";
import { TYPES } from "../sql/words.ts";
import { formatCount } from "../ui/format.ts";
import { Icon } from "../ui/icons.tsx";
import type { FileKind, ImportReport } from "./send.ts";

export interface Choices {
  table: string;
  /** Types by column name that replace the found ones. */
  types: Record<string, string>;
  timestamp: string;
  partitionBy: string;
  atomicity: "skipCol" | "skipRow" | "abort";
}

/** The table that the rows will be added to, if it exists. */
export interface ExistingTable {
  name: string;
  rows: number;
  /** Names of the columns, `undefined` until they are read. */
  columns: string[] | undefined;
}

interface PreviewProps {
  kind: FileKind;
  preview: ImportReport | undefined;
  existing: ExistingTable | undefined;
  choices: Choices;
  isBusy: boolean;
  onChange: (choices: Choices) => void;
  onImport: () => void;
}

const PARTITIONS = ["", "NONE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"];
const ON_ERROR: [Choices["atomicity"], string][] = [
  ["skipCol", "bad values become NULL"],
  ["skipRow", "bad records are left out"],
  ["abort", "a bad record refuses the file"],
];

function valueOf(event: Event): string {
  return (event.target as HTMLInputElement | HTMLSelectElement).value;
}

/** Reason that the dry run gives for a column. */
function reasonOf(preview: ImportReport, column: string): string {
  const found = preview.found.find(([name]) => name === `column ${column}`);
  return (found?.[1] ?? "").replace(/^[^:]*: /, "");
}

function Columns({
  preview,
  choices,
  onChange,
}: {
  preview: ImportReport;
  choices: Choices;
  onChange: (choices: Choices) => void;
}): JSX.Element {
  return (
    <div class="data-table" tabIndex={0} role="region" aria-label="Columns that were found">
      <table>
        <thead>
          <tr>
            <th scope="col">Column</th>
            <th scope="col">Type</th>
            <th scope="col">Reason</th>
          </tr>
        </thead>
        <tbody>
          {preview.columns.map(({ name, type }) => (
            <tr key={name}>
              <td>{name}</td>
              <td>
                <select
                  aria-label={`Type of ${name}`}
                  value={choices.types[name] ?? type}
                  onChange={(event) => onChange({ ...choices, types: { ...choices.types, [name]: valueOf(event) } })}
                >
                  {[...new Set([type, ...TYPES])].map((option) => (
                    <option key={option}>{option}</option>
                  ))}
                </select>
              </td>
              <td class="muted">{reasonOf(preview, name)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Options({
  preview,
  choices,
  onChange,
}: {
  preview: ImportReport | undefined;
  choices: Choices;
  onChange: (choices: Choices) => void;
}): JSX.Element {
  const times = preview?.columns.filter(({ type }) => /TIMESTAMP|DATE/.test(type)) ?? [];
  return (
    <>
      <label class="field">
        <span>Timestamp</span>
        <select value={choices.timestamp} onChange={(event) => onChange({ ...choices, timestamp: valueOf(event) })}>
          <option value="">{preview?.timestamp ? `${preview.timestamp} (found)` : "none"}</option>
          {times.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>Partition by</span>
        <select value={choices.partitionBy} onChange={(event) => onChange({ ...choices, partitionBy: valueOf(event) })}>
          {PARTITIONS.map((unit) => (
            <option key={unit} value={unit}>
              {unit || (preview?.partitionBy ? `${preview.partitionBy} (by the rows)` : "by the rows")}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>On error</span>
        <select
          value={choices.atomicity}
          onChange={(event) => onChange({ ...choices, atomicity: valueOf(event) as Choices["atomicity"] })}
        >
          {ON_ERROR.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </label>
    </>
  );
}

interface TargetProps {
  kind: FileKind;
  preview: ImportReport | undefined;
  existing: ExistingTable | undefined;
  table: string;
}

/** Note before the import: the table exists and receives the rows, or is created. */
function Target({ kind, preview, existing, table }: TargetProps): JSX.Element {
  if (kind === "lines")
    return (
      <p class="target-note">
        Each line names its table: existing tables get the rows and new columns, other tables are created.
      </p>
    );
  if (!existing)
    return (
      <p class="target-note">
        The table <strong>{table}</strong> does not exist and is created.
      </p>
    );
  const known = existing.columns && new Set(existing.columns.map((name) => name.toLowerCase()));
  const found = preview?.columns.map(({ name }) => name) ?? [];
  const added = known ? found.filter((name) => !known.has(name.toLowerCase())) : [];
  return (
    <p class="target-note existing" role="status">
      <Icon name="alert" size={14} />
      <span>
        The table <strong>{existing.name}</strong> exists with {formatCount(existing.rows)}{" "}
        {existing.rows === 1 ? "row" : "rows"}. The rows of the file are added to it
        {added.length > 0 && (
          <>
            , and it gets {added.length === 1 ? "the new column" : "the new columns"}{" "}
            <strong>{added.join(", ")}</strong>
          </>
        )}
        . Choose another name to create a new table.
      </span>
    </p>
  );
}

/** What a dry run found in the file, and the choices before the import. */
export function Preview(props: PreviewProps): JSX.Element {
  const { kind, preview, existing, choices, isBusy, onChange, onImport } = props;
  const general = preview?.found.filter(([name]) => !name.startsWith("column ")) ?? [];
  return (
    <section aria-label="Preview">
      <div class="form-row">
        {kind !== "lines" && (
          <label class="field">
            <span>Table</span>
            <input
              type="text"
              value={choices.table}
              onChange={(event) => onChange({ ...choices, table: valueOf(event) })}
              spellcheck={false}
            />
          </label>
        )}
        {kind === "csv" && <Options preview={preview} choices={choices} onChange={onChange} />}
        <button class="button primary" disabled={isBusy || (kind === "csv" && !preview)} onClick={onImport}>
          {existing ? `Add rows to ${existing.name}` : "Import"}
        </button>
      </div>
      <Target kind={kind} preview={preview} existing={existing} table={choices.table} />
      {general.length > 0 && (
        <p class="found">
          {general.map(([name, text]) => (
            <span key={name} class="badge">
              {name}: {text}
            </span>
          ))}
        </p>
      )}
      {preview && <Columns preview={preview} choices={choices} onChange={onChange} />}
      {preview?.statement && !existing && (
        <pre class="ddl" role="region" tabIndex={0} aria-label="Statement that creates the table">
          {preview.statement}
        </pre>
      )}
    </section>
  );
}
