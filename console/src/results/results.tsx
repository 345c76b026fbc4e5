import type { JSX } from "preact";
import { goTo } from "../editor/editor.tsx";
import { indexOfCharacter } from "../sql/statements.ts";
import { activeRun, cancelRun, type Run } from "../state/run.ts";
import { activeTab } from "../state/tabs.ts";
import { isDetailOpen } from "../state/view.ts";
import { formatMs } from "../ui/format.ts";
import { Icon } from "../ui/icons.tsx";
import { lazyComponent } from "../ui/lazy.tsx";
import { Welcome } from "../welcome/welcome.tsx";
import { Elapsed } from "./elapsed.tsx";
import { Grid } from "./grid.tsx";
import { gridStateOf } from "./grid-state.ts";
import type { ResultPages } from "./pages.ts";
import { shownView } from "./shown-view.ts";
import { Progress } from "./progress.tsx";
import { RowDetail } from "./row-detail.tsx";
import { PlanText } from "./plan-text.tsx";
import { ResultToolbar } from "./toolbar.tsx";

const ChartPanel = lazyComponent(() => import("../charts/chart-panel.tsx").then((module) => module.ChartPanel));

function ErrorPanel({ run }: { run: Run }): JSX.Element {
  const error = run.error as NonNullable<Run["error"]>;
  const index = error.position === undefined ? undefined : indexOfCharacter(run.sql, error.position);
  const lineStart = index === undefined ? 0 : run.sql.lastIndexOf("\n", index - 1) + 1;
  const lineEnd = index === undefined ? -1 : run.sql.indexOf("\n", index);
  const line = run.sql.slice(lineStart, lineEnd < 0 ? undefined : lineEnd);
  const show = (): void => goTo(run.offset + (index ?? 0));
  return (
    <div class="error-panel" role="alert">
      <div class="error-title">
        <Icon name="alert" />
        <span>{error.message}</span>
      </div>
      {index !== undefined && (
        <pre class="error-excerpt">
          {line}
          {"\n"}
          <span class="caret">{" ".repeat(Math.max(0, index - lineStart))}^</span>
        </pre>
      )}
      {error.hint && <p class="error-hint">{error.hint}</p>}
      {index !== undefined && (
        <button class="button" onClick={show}>
          Go to the error
        </button>
      )}
    </div>
  );
}

function Running({ run }: { run: Run }): JSX.Element {
  return (
    <div class="empty-panel">
      <div class="spinner" aria-hidden="true" />
      <p>
        Running for <Elapsed since={run.startedAt} />
      </p>
      <Progress sql={run.sql} />
      <button class="button" onClick={() => cancelRun(activeTab.peek().id)}>
        <Icon name="stop" size={12} /> Cancel <kbd>Esc</kbd>
      </button>
    </div>
  );
}

function RowsPanel({ result }: { result: ResultPages }): JSX.Element {
  const state = gridStateOf(activeTab.value.id, result);
  const toggleDetail = (): void => void (isDetailOpen.value = !isDetailOpen.peek());
  if (shownView(result) === "chart") {
    return <ChartPanel key={activeTab.value.id} result={result} />;
  }
  const isPlan = result.columns.length === 1 && result.columns[0]?.name === "QUERY PLAN";
  if (isPlan) return <PlanText result={result} />;
  if (result.rowCount === 0) return <NoRows result={result} />;
  return (
    <div class="rows-panel">
      <Grid key={activeTab.value.id} result={result} state={state} onOpenRow={toggleDetail} />
      {isDetailOpen.value && <RowDetail result={result} state={state} />}
    </div>
  );
}

function NoRows({ result }: { result: ResultPages }): JSX.Element {
  return (
    <div class="empty-panel">
      <p>The query returned no rows.</p>
      <p class="muted">Columns: {result.columns.map((column) => `${column.name} ${column.type}`).join(", ")}</p>
    </div>
  );
}

function Outcome({ run }: { run: Run }): JSX.Element {
  if (run.result) return <RowsPanel result={run.result} />;
  if (run.state === "running") return <Running run={run} />;
  if (run.error) return <ErrorPanel run={run} />;
  const text = run.state === "cancelled" ? "The statement was cancelled." : run.message;
  return (
    <div class="empty-panel">
      <Icon name={run.state === "cancelled" ? "stop" : "check"} size={22} />
      <p>{text}</p>
      <p class="muted">{formatMs(run.elapsedMs)}</p>
    </div>
  );
}

/** The lower half of the query page: the outcome of the last run of the active tab. */
export function Results(): JSX.Element {
  const run = activeRun.value;
  if (!run) return <Welcome />;
  return (
    <section class="results" aria-label="Results">
      <ResultToolbar run={run} />
      <div class="results-body">
        <Outcome run={run} />
      </div>
    </section>
  );
}
