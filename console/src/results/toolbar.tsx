import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { sortedQuery } from "../sql/statements.ts";
import { runStatements, sequences, showRun, type Run } from "../state/run.ts";
import { INTERVALS_MS, live, setLive } from "../state/live.ts";
import { activeTab, openTab } from "../state/tabs.ts";
import { isDetailOpen, resultView, type ResultView } from "../state/view.ts";
import { formatCount, formatMs } from "../ui/format.ts";
import { Icon } from "../ui/icons.tsx";
import { Menu } from "../ui/menu.tsx";
import { copySelection } from "./copy.ts";
import { Elapsed } from "./elapsed.tsx";
import { exportLoaded, exportRows, exportsParquet, type ExportFormat } from "./export.ts";
import { gridRows, gridStateOf, type GridState } from "./grid-state.ts";
import type { ResultPages } from "./pages.ts";
import { hasChart, shownView } from "./shown-view.ts";
import { TEXT_FORMATS } from "./text-formats.ts";

function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Says how many rows there are and which of them the grid can show. */
export function rowSummary(result: ResultPages, state: GridState): string {
  const total = result.isExact ? plural(result.rowCount, "row") : `at least ${plural(result.rowCount, "row")}`;
  const rows = gridRows(result, state.order.value);
  if (rows.isOrdered && shownView(result) === "grid") {
    const loaded = formatCount(result.loadedCount());
    const scope = rows.isPartial ? `of ${loaded} loaded rows (${total} in all)` : `of ${total}`;
    return `${formatCount(rows.count)} ${scope}`;
  }
  if (result.reachable < result.rowCount) return `first ${formatCount(result.reachable)} of ${total}`;
  return total;
}

/** Says which rows are visible. */
function VisibleRows({ result, state }: { result: ResultPages; state: GridState }): JSX.Element | null {
  const [lo, hi] = state.visible.value;
  const isPaged = !result.isComplete() && result.query.isRepeatable;
  if (hi <= lo || shownView(result) !== "grid") return null;
  return (
    <span class="muted" title={isPaged ? "Rows are read in pages: each page runs the statement again" : undefined}>
      showing {formatCount(lo + 1)}–{formatCount(hi)}
    </span>
  );
}

/** Offers to sort all rows at the server while the grid sorts only the loaded ones. */
function SortAll({ result, state }: { result: ResultPages; state: GridState }): JSX.Element | null {
  const { sort } = state.order.value;
  const column = sort && result.columns[sort.column];
  if (!column || shownView(result) !== "grid" || result.isComplete() || !result.query.isRepeatable) return null;
  const sortAll = (): void => {
    const sql = sortedQuery(result.query.sql, column.name, sort.isDescending);
    openTab(`${sql};\n`, "Sorted");
    void runStatements(activeTab.peek().id, [{ text: sql, from: 0 }]);
  };
  return (
    <button class="link" onClick={sortAll}>
      sort all rows
    </button>
  );
}

function Summary({ run }: { run: Run }): JSX.Element {
  if (run.state === "running" && !run.result) {
    return (
      <span class="summary">
        <span class="dot running" /> running <Elapsed since={run.startedAt} />
      </span>
    );
  }
  const { result } = run;
  const dot = run.error ? "failed" : run.state === "cancelled" ? "idle" : "done";
  const state = result && gridStateOf(activeTab.value.id, result);
  const text = result && state ? rowSummary(result, state) : run.error ? "failed" : run.state;
  return (
    <span class="summary" aria-live="polite">
      <span class={`dot ${dot}`} />
      <strong data-testid="row-summary">{text}</strong>
      {result && state && <VisibleRows result={result} state={state} />}
      {result && state && <SortAll result={result} state={state} />}
      <span class="muted">{formatMs(run.elapsedMs)}</span>
      {result?.error && <span class="error-text">a page could not be read: {result.error}</span>}
    </span>
  );
}

function ViewSwitch({ result }: { result: ResultPages }): JSX.Element {
  const shown = shownView(result);
  const isDrawable = hasChart(result);
  const choose = (view: ResultView) => (): void => void (resultView.value = view);
  return (
    <div class="switch" role="group" aria-label="View of the result">
      <button aria-label="Grid" aria-pressed={shown === "grid"} onClick={choose("grid")}>
        <Icon name="table" size={14} /> <span class="wide">Grid</span>
      </button>
      <button
        aria-label="Chart"
        aria-pressed={shown === "chart"}
        disabled={!isDrawable}
        title={isDrawable ? undefined : "No column has numbers to draw"}
        onClick={choose("chart")}
      >
        <Icon name="chart" size={14} /> <span class="wide">Chart</span>
      </button>
    </div>
  );
}

function FilterField({ state }: { state: GridState }): JSX.Element {
  const set = (event: Event): void => {
    state.order.value = { ...state.order.peek(), filter: (event.target as HTMLInputElement).value };
  };
  const clear = (event: KeyboardEvent): void => {
    if (event.key !== "Escape") return;
    state.order.value = { ...state.order.peek(), filter: "" };
    event.stopPropagation();
  };
  const hint = "Text, or a condition such as host = a; value > 5; name = null";
  return (
    <label class="filter" title={hint}>
      <Icon name="filter" size={13} />
      <input
        type="text"
        placeholder="Filter loaded rows"
        aria-label="Filter loaded rows"
        value={state.order.value.filter}
        onInput={set}
        onKeyDown={clear}
        spellcheck={false}
      />
    </label>
  );
}

function ExportMenu({ result }: { result: ResultPages }): JSX.Element {
  const hasParquet = useSignal(false);
  result.version.value;
  const all = plural(result.rowCount, "row");
  const formats: ExportFormat[] = ["CSV", ...(hasParquet.value ? (["Parquet"] as const) : []), "Arrow", "JSON"];
  const server = formats.map((format) => ({
    label: format === "Arrow" ? "Arrow stream" : format,
    detail: result.isExact ? all : "all rows",
    run: () => void exportRows(format, result),
  }));
  const loaded = plural(result.loadedCount(), "loaded row");
  const local = (["CSV", "JSON", "Markdown"] as const)
    .filter((format) => format === "Markdown" || !result.query.isRepeatable)
    .map((format) => ({ label: format, detail: loaded, run: () => exportLoaded(format, result) }));
  const items = result.query.isRepeatable ? [...server, ...local] : local;
  const probe = (): void => void exportsParquet().then((known) => (hasParquet.value = known));
  return (
    <Menu label="Export" items={items} onOpen={probe}>
      <Icon name="export" size={14} /> <span class="wide">Export</span>
    </Menu>
  );
}

function LiveMenu({ run }: { run: Run }): JSX.Element {
  const current = live.value;
  const isLive = current?.tab === activeTab.value.id;
  const label = (ms: number): string => (ms < 1000 ? `${ms} ms` : `${ms / 1000} s`);
  const items = [
    { label: "Off", run: () => setLive(undefined) },
    ...INTERVALS_MS.map((ms) => ({ label: `Every ${label(ms)}`, run: () => setLive(ms) })),
  ];
  return (
    <Menu label="Live: repeat the query" items={run.result?.query.isRepeatable ? items : items.slice(0, 1)}>
      <span class={isLive ? "dot live" : "dot"} /> {isLive ? `Live ${label(current.intervalMs)}` : "Live"}
    </Menu>
  );
}

/** Buttons for the results of statements that ran together. */
function SequenceSwitch({ run }: { run: Run }): JSX.Element | null {
  const tab = activeTab.value.id;
  const sequence = sequences.value.get(tab) ?? [];
  if (sequence.length < 2) return null;
  return (
    <div class="switch" role="group" aria-label="Statement">
      {sequence.map((entry, i) => (
        <button key={entry.id} aria-pressed={entry === run} title={entry.sql} onClick={() => showRun(tab, entry)}>
          {entry.error && <span class="dot failed" />} {i + 1}
        </button>
      ))}
    </div>
  );
}

export function ResultToolbar({ run }: { run: Run }): JSX.Element {
  const { result } = run;
  const state = result && gridStateOf(activeTab.value.id, result);
  const toggleDetail = (): void => void (isDetailOpen.value = !isDetailOpen.peek());
  return (
    <div class="toolbar">
      {result && <ViewSwitch result={result} />}
      <SequenceSwitch run={run} />
      <Summary run={run} />
      <span class="spacer" />
      {result && state && shownView(result) === "grid" && (
        <>
          <FilterField state={state} />
          <button
            class="button ghost"
            aria-pressed={isDetailOpen.value}
            title="Values of the row (Enter)"
            onClick={toggleDetail}
          >
            <Icon name="detail" size={14} /> <span class="wide">Row</span>
          </button>
          <Menu
            label="Copy the selection as"
            items={TEXT_FORMATS.map((format) => ({
              label: `Copy as ${format}`,
              run: () => void copySelection(format, result, state),
            }))}
          >
            <Icon name="copy" size={14} /> <span class="wide">Copy</span>
          </Menu>
        </>
      )}
      {result && <ExportMenu result={result} />}
      {result && <LiveMenu run={run} />}
    </div>
  );
}
