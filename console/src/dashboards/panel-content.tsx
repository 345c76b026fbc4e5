import type { ReadonlySignal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import { PanelQuery, type PanelState } from "../panels/panel-query.ts";
import { ErrorBox } from "../panels/panel-status.tsx";
import { RowsView } from "../panels/rows-view.tsx";
import { hasTimeRange } from "../sql/statements.ts";
import { isPageVisible } from "../ui/visibility.ts";
import type { Panel } from "./model.ts";
import { bound, statementKey } from "./panel-statement.ts";
import type { Session } from "./session.ts";

interface PanelContentProps {
  panel: Panel;
  session: Session;
  /** Grows with each refresh. */
  refreshes: ReadonlySignal<number>;
}

/** Runs the statement of a panel when it changes and with each refresh, while the page is visible. */
function usePanelQuery({ panel, session, refreshes }: PanelContentProps, width: () => number): PanelQuery {
  const [query] = useState(() => new PanelQuery());
  const shown = useRef<string | undefined>(undefined);
  const key = statementKey(panel, session);
  const refresh = refreshes.value;
  const isVisible = isPageVisible.value;
  const send = (run: (sql: string) => Promise<void>): void => {
    const statement = bound(panel, session, width());
    if ("sql" in statement) void run(statement.sql);
    else if ("problem" in statement) query.fail(statement.problem, statement.hint);
  };
  useEffect(() => {
    if (!isVisible || shown.current === key) return;
    shown.current = key;
    send((sql) => query.restart(sql));
  }, [key, isVisible]);
  useEffect(() => {
    if (refresh > 0 && isVisible) send((sql) => query.refresh(sql));
  }, [refresh]);
  useEffect(() => () => query.cancel(), []);
  return query;
}

/** The rows of a panel, or the reason why there are none. */
export function PanelContent(props: PanelContentProps & { onState: (state: PanelState) => void }): JSX.Element {
  const { panel, session, onState } = props;
  const host = useRef<HTMLDivElement>(null);
  const query = usePanelQuery(props, () => Math.max(100, host.current?.clientWidth ?? 400));
  const state = query.state.value;
  useEffect(() => onState(state), [state]);
  const onZoom = (range: [number, number] | undefined): void => session.zoom(panel.sql, range);
  return (
    <div class="panel-body" ref={host}>
      {state.error && <ErrorBox {...state.error} />}
      {state.result && (
        <RowsView
          result={state.result}
          chart={panel.chart}
          group="dashboard"
          isZoomedAtServer={hasTimeRange(panel.sql)}
          onZoom={onZoom}
        />
      )}
      {!state.result && !state.error && <p class="panel-note">{state.isRunning ? "Loading …" : "Waiting …"}</p>}
    </div>
  );
}
