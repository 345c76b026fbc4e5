import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import type { Row } from "../api/exec.ts";
import { isAbort } from "../api/http.ts";
import type { ResultPages } from "../results/pages.ts";
import { hasTimeRange } from "../sql/statements.ts";
import { activeRun, runAgain, setTimeRange } from "../state/run.ts";
import { activeTab, openTab } from "../state/tabs.ts";
import { ChartControls } from "./chart-controls.tsx";
import { chartRows, isReducible, type ChartRows } from "./chart-data.ts";
import { chooseChart, differInScale, type ChartSpec } from "./choose.ts";
import { Plot } from "./plot-view.tsx";
import { timestampText, type Aggregate } from "./reduce.ts";
import { chartData, type ChartData } from "./series.ts";

/** Splits data into one chart for each series. */
function split(data: ChartData, isSplit: boolean): ChartData[] {
  return isSplit ? data.series.map((series) => ({ ...data, series: [series] })) : [data];
}

function sampleRows(result: ResultPages): Row[] {
  return result
    .loadedIndexes()
    .slice(0, 2000)
    .map((index) => result.row(index) as Row);
}

function differs(result: ResultPages, spec: ChartSpec | undefined): boolean {
  return spec !== undefined && differInScale(result.columns, sampleRows(result), spec.ys);
}

export function ChartPanel({ result }: { result: ResultPages }): JSX.Element {
  const columnsKey = result.columns.map((column) => column.name + column.type).join();
  const chosen = useMemo(() => chooseChart(result.columns, sampleRows(result), result.timestamp), [columnsKey]);
  const [spec, setSpec] = useState<ChartSpec | undefined>(chosen);
  const [aggregate, setAggregate] = useState<Aggregate>("avg");
  const [isSplit, setSplit] = useState(() => differs(result, chosen));
  const [zoom, setZoom] = useState<[number, number] | undefined>(undefined);
  const [drawn, setDrawn] = useState<ChartRows | undefined>(undefined);
  const [error, setError] = useState<string | undefined>(undefined);
  const host = useRef<HTMLDivElement>(null);
  const version = result.version.value;
  const isReduced = spec !== undefined && isReducible(result, spec);

  useEffect(() => {
    setSpec(chosen);
    setSplit(differs(result, chosen));
    setZoom(undefined);
  }, [chosen]);
  useEffect(() => {
    if (!spec) return undefined;
    const abort = new AbortController();
    const points = Math.max(100, host.current?.clientWidth ?? 800);
    chartRows(result, spec, aggregate, isReduced ? zoom : undefined, points, abort.signal).then(
      (rows) => (setDrawn(rows), setError(undefined)),
      (reason: unknown) => isAbort(reason) || setError(String(reason instanceof Error ? reason.message : reason)),
    );
    return () => abort.abort();
  }, [result, spec, aggregate, zoom, isReduced, isReduced ? 0 : version]);

  const charts = useMemo(
    () => drawn && split(chartData(drawn.columns, drawn.rows, drawn.spec), isSplit && drawn.spec.kind !== "candles"),
    [drawn, isSplit],
  );
  if (!spec) return <div class="empty-panel">No column has numbers to draw.</div>;
  const onZoom = (range: [number, number] | undefined): void => {
    const run = activeRun.peek();
    const tab = activeTab.peek().id;
    const isTime = charts?.[0]?.isTime === true;
    if (isTime && run && hasTimeRange(run.sql)) {
      setTimeRange(tab, range && { from: timestampText(range[0]), to: timestampText(range[1]) });
      void runAgain(tab);
    } else if (isReduced) setZoom(range);
  };
  const zoomsAtServer = isReduced || hasTimeRange(activeRun.value?.sql ?? "");
  const note = drawn?.note ?? charts?.[0]?.note;
  const hasNotes = error !== undefined || note !== undefined || drawn?.reducedSql !== undefined;
  return (
    <div class="chart-panel" ref={host}>
      <ChartControls
        columns={result.columns}
        spec={spec}
        onSpec={setSpec}
        aggregate={isReduced ? aggregate : undefined}
        onAggregate={setAggregate}
        split={{ isOn: isSplit, onChange: setSplit }}
      />
      {hasNotes && (
        <div class="chart-notes">
          {error && <span class="error-text">{error}</span>}
          {note && <span>Drawn: {note}.</span>}
          {drawn?.reducedSql && (
            <span>
              Computed at the server with SAMPLE BY.{" "}
              <button class="link" onClick={() => openTab(`${drawn.reducedSql};\n`, "Chart query")}>
                Open the query
              </button>
            </span>
          )}
        </div>
      )}
      <div class="plots">
        <span class="hint" aria-hidden="true">
          Drag to zoom, double-click to reset
        </span>
        {charts?.map((data, i) => (
          <Plot
            key={i}
            data={data}
            kind={drawn?.spec.kind ?? "line"}
            firstColor={i}
            isZoomedAtServer={zoomsAtServer}
            syncKey="tidalite"
            onZoom={onZoom}
          />
        ))}
      </div>
    </div>
  );
}
