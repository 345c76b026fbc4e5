import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { JSX } from "preact";
import { exec, select } from "../api/exec.ts";
import { request } from "../api/http.ts";
import { DataTable, type DataColumn, type RowObject } from "../ui/data-table.tsx";
import { formatBytes } from "../ui/format.ts";
import { notify } from "../ui/notice.tsx";

interface Health {
  status: string;
  message: string;
  checks: { name: string; status: string; message?: string }[];
}

interface Snapshot {
  health: Health | undefined;
  activity: RowObject[];
  memory: RowObject[];
  statistics: RowObject[];
  metrics: RowObject[];
}

/** The query of this page itself is left out. */
const ACTIVITY = "SELECT * FROM query_activity() WHERE query NOT LIKE '%query_activity()%' ORDER BY query_start";
const REFRESH_MS = 2000;

const snapshot = signal<Snapshot | undefined>(undefined);
const settings = signal<RowObject[]>([]);

async function rowsOf(sql: string): Promise<RowObject[]> {
  try {
    return await select(sql);
  } catch {
    return [];
  }
}

async function readHealth(): Promise<Health | undefined> {
  try {
    return (await (await request("/health")).json()) as Health;
  } catch {
    return undefined;
  }
}

async function refresh(): Promise<void> {
  const [health, activity, memory, statistics, metrics] = await Promise.all([
    readHealth(),
    rowsOf(ACTIVITY),
    rowsOf("memory_metrics()"),
    rowsOf("SELECT * FROM statement_statistics() ORDER BY total_ms DESC LIMIT 30"),
    rowsOf("SELECT * FROM table_metrics() ORDER BY table_name"),
  ]);
  snapshot.value = { health, activity, memory, statistics, metrics };
}

async function cancelQuery(row: RowObject): Promise<void> {
  try {
    await exec(`CANCEL QUERY ${String(row["query_id"])}`);
    notify(`Cancelled query ${String(row["query_id"])}`);
  } catch (error) {
    notify(error instanceof Error ? error.message : String(error), true);
  }
  await refresh();
}

const ACTIVITY_FIELDS: DataColumn[] = [
  { field: "query_id", title: "Id" },
  { field: "username", title: "Client" },
  { field: "query_start", title: "Started", as: "time" },
  { field: "state", title: "State" },
  { field: "rows_read", title: "Rows read", as: "count" },
  { field: "rows_total", title: "of", as: "count" },
  { field: "query", title: "Statement", as: "code" },
];

const STATISTICS_FIELDS: DataColumn[] = [
  { field: "query", title: "Statement", as: "code" },
  { field: "calls", title: "Calls", as: "count" },
  { field: "errors", title: "Errors", as: "count" },
  { field: "total_ms", title: "Total ms", as: "ms" },
  { field: "mean_ms", title: "Mean ms", as: "ms" },
  { field: "max_ms", title: "Max ms", as: "ms" },
  { field: "rows", title: "Rows", as: "count" },
];

const METRICS_FIELDS: DataColumn[] = [
  { field: "table_name", title: "Table" },
  { field: "rowsCommitted", title: "Rows committed", as: "count" },
  { field: "stagedRows", title: "Staged", as: "count" },
  { field: "rowsMerged", title: "Merged", as: "count" },
  { field: "rowsRewritten", title: "Rewritten", as: "count" },
  { field: "lateRows", title: "Late", as: "count" },
  { field: "segments", title: "Segments", as: "count" },
  { field: "segmentBytes", title: "Segment bytes", as: "bytes" },
  { field: "lastMerge", title: "Last merge", as: "time" },
];

const SETTING_FIELDS: DataColumn[] = [
  { field: "name", title: "Setting" },
  { field: "setting", title: "Value" },
  { field: "short_desc", title: "Description" },
];

function HealthCards({ current }: { current: Snapshot | undefined }): JSX.Element {
  const health = current?.health;
  const memory = new Map(current?.memory.map((row) => [row["memory_tag"], Number(row["bytes"])]));
  const bytes = (tag: string): string => (memory.has(tag) ? formatBytes(memory.get(tag) as number) : "–");
  return (
    <dl class="facts">
      {health?.checks.map((check) => (
        <div class="fact" key={check.name} title={check.message}>
          <dt>{check.name}</dt>
          <dd>
            <span class={check.status === "pass" ? "dot done" : "dot failed"} /> {check.status}
          </dd>
        </div>
      ))}
      {current && !health && (
        <div class="fact">
          <dt>Health</dt>
          <dd>
            <span class="dot failed" /> not reachable
          </dd>
        </div>
      )}
      <div class="fact">
        <dt>Process memory</dt>
        <dd>{bytes("TOTAL_USED")}</dd>
      </div>
      <div class="fact">
        <dt>Resident</dt>
        <dd>{bytes("RSS")}</dd>
      </div>
      <div class="fact">
        <dt>Mapped files</dt>
        <dd>{bytes("MMAP_DEFAULT")}</dd>
      </div>
    </dl>
  );
}

/** Health, running statements, statistics and settings; refreshed every two seconds while the page is visible. */
export function OperationsPage(): JSX.Element {
  useEffect(() => {
    void refresh();
    void rowsOf("SELECT name, setting, short_desc FROM pg_settings ORDER BY name").then(
      (rows) => (settings.value = rows),
    );
    const timer = setInterval(() => void (document.hidden || refresh()), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  const current = snapshot.value;
  const cancel = (row: RowObject): JSX.Element => (
    <button class="button small" onClick={() => void cancelQuery(row)}>
      Cancel
    </button>
  );
  return (
    <div class="page">
      <div class="page-body">
        <header class="page-head">
          <h1>Operations</h1>
          {current?.health && <span class="muted">{current.health.message}</span>}
        </header>
        <HealthCards current={current} />
        <h2>Running statements</h2>
        <DataTable
          label="Running statements"
          columns={ACTIVITY_FIELDS}
          rows={current?.activity ?? []}
          empty="No statement is running."
          action={cancel}
        />
        <h2>Statement statistics</h2>
        <DataTable
          label="Statement statistics"
          columns={STATISTICS_FIELDS}
          rows={current?.statistics ?? []}
          empty="No statements yet."
        />
        <h2>Tables since the start</h2>
        <DataTable
          label="Tables since the start"
          columns={METRICS_FIELDS}
          rows={current?.metrics ?? []}
          empty="No tables."
        />
        <h2>Settings of the session</h2>
        <DataTable label="Settings" columns={SETTING_FIELDS} rows={settings.value} empty="No settings." />
      </div>
    </div>
  );
}
