import { useEffect, useState } from "preact/hooks";
import type { JSX } from "preact";
import { select } from "../api/exec.ts";
import { quoteText } from "../sql/statements.ts";
import { formatCount } from "../ui/format.ts";

const INTERVAL_MS = 1000;

interface State {
  state: string;
  read: number;
  total: number;
}

async function readState(sql: string): Promise<State | undefined> {
  // The statement may have got a LIMIT at its end.
  const query = `SELECT state, rows_read, rows_total FROM query_activity() WHERE starts_with(query, ${quoteText(sql)}) ORDER BY query_start DESC LIMIT 1`;
  const [row] = await select(query);
  return (
    row && { state: String(row["state"]), read: Number(row["rows_read"] ?? 0), total: Number(row["rows_total"] ?? 0) }
  );
}

/** Rows that a running statement has read, as the server reports them. */
export function Progress({ sql }: { sql: string }): JSX.Element | null {
  const [state, setState] = useState<State | undefined>(undefined);
  useEffect(() => {
    const timer = setInterval(() => void readState(sql).then(setState, () => setState(undefined)), INTERVAL_MS);
    return () => clearInterval(timer);
  }, [sql]);
  if (!state) return null;
  if (state.state === "queued") return <p class="muted">Waiting for other heavy queries to end</p>;
  if (state.total === 0) return null;
  return (
    <p class="progress">
      <progress max={state.total} value={state.read} aria-label="Rows read" />
      <span class="muted">
        {formatCount(state.read)} of {formatCount(state.total)} rows read
      </span>
    </p>
  );
}
