import { useMemo, useState } from "preact/hooks";
import type { JSX } from "preact";
import { specOf, type PanelChart } from "../charts/panel-chart.ts";
import { valueText } from "../charts/labels.ts";
import { Plot } from "../charts/plot-view.tsx";
import { chartData } from "../charts/series.ts";
import { cellText, displayText, familyOf, timeText } from "../results/cells.ts";
import { Grid } from "../results/grid.tsx";
import { newGridState } from "../results/grid-state.ts";
import { ResultPages } from "../results/pages.ts";
import { formatCount } from "../ui/format.ts";
import type { PanelRows } from "./panel-query.ts";
import { singleValue } from "./single-value.ts";

interface RowsViewProps {
  result: PanelRows;
  chart: PanelChart;
  /** Name of the panel, for the cursor that charts over time share. */
  group: string;
  /** True if a zoom runs the statement for the chosen range. */
  isZoomedAtServer: boolean;
  /** Called with a time range in seconds since 1970, or `undefined` after a double click. */
  onZoom: (range: [number, number] | undefined) => void;
}

function Table({ result }: { result: PanelRows }): JSX.Element {
  const key = result.columns.map(({ name, type }) => `${name}:${type}`).join("\n");
  const state = useMemo(() => newGridState(key), [key]);
  const pages = useMemo(() => {
    const rows = { kind: "rows" as const, ...result, count: result.rows.length };
    return new ResultPages({ sql: "", params: [], isRepeatable: false }, rows, true);
  }, [result]);
  return <Grid result={pages} state={state} onOpenRow={() => undefined} />;
}

function Value({ result }: { result: PanelRows }): JSX.Element {
  const value = singleValue(result.columns, result.rows);
  if (!value) return <p class="panel-note">no value</p>;
  const { column, cell } = value;
  const isTime = familyOf(column.type) === "time";
  const text = isTime && cell !== null ? timeText(cellText(cell)) : numberText(displayText(cell, column.type));
  return (
    <p class="single-value">
      <strong>{text}</strong>
      <span class="muted">{column.name}</span>
    </p>
  );
}

/** Groups the digits of a number; integers keep all of them, fractions have at most seven. */
function numberText(text: string): string {
  if (!/^-?\d+(\.\d+)?$/.test(text)) return text;
  const value = Number(text);
  if (Number.isInteger(value)) return Number.isSafeInteger(value) ? formatCount(value) : text;
  return valueText(Number(value.toPrecision(7)));
}

function Chart({ result, chart, group, isZoomedAtServer, onZoom }: RowsViewProps): JSX.Element {
  const { columns, rows, timestamp } = result;
  const spec = useMemo(() => specOf(chart, columns, rows, timestamp), [chart, result]);
  const data = useMemo(() => spec && chartData(columns, rows, spec), [spec]);
  const [own] = useState(() => `panel ${(plotCount += 1)}`);
  if (!spec || !data) return <p class="panel-note">No column has numbers to draw.</p>;
  return (
    <>
      {data.note && <p class="panel-note">Drawn: {data.note}.</p>}
      <Plot
        data={data}
        kind={spec.kind}
        firstColor={0}
        isZoomedAtServer={isZoomedAtServer && data.isTime}
        syncKey={data.isTime ? group : own}
        onZoom={(range) => data.isTime && onZoom(range)}
      />
    </>
  );
}

let plotCount = 0;

/** The rows of a panel or a cell: a grid, one value or a chart. */
export function RowsView(props: RowsViewProps): JSX.Element {
  const { result, chart } = props;
  if (chart.kind === "table") return <Table result={result} />;
  if (result.rows.length === 0) return <p class="panel-note">no rows</p>;
  return chart.kind === "value" ? <Value result={result} /> : <Chart {...props} />;
}
