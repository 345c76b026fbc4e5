import type { JSX } from "preact";
import { ChartControls } from "../charts/chart-controls.tsx";
import { chartOf, isChartKind, PANEL_KINDS, specOf, type PanelChart, type PanelKind } from "../charts/panel-chart.ts";
import type { PanelQuery, PanelRows } from "./panel-query.ts";
import { ErrorBox } from "./panel-status.tsx";
import { RowsView } from "./rows-view.tsx";

function KindSelect({ chart, onChart }: { chart: PanelChart; onChart: (chart: PanelChart) => void }): JSX.Element {
  return (
    <label class="field">
      <span>Show as</span>
      <select
        value={chart.kind}
        onChange={(event) => onChart({ ...chart, kind: (event.target as HTMLSelectElement).value as PanelKind })}
      >
        {PANEL_KINDS.map((kind) => (
          <option key={kind}>{kind}</option>
        ))}
      </select>
    </label>
  );
}

interface ColumnsProps {
  result: PanelRows;
  chart: PanelChart;
  onChart: (chart: PanelChart) => void;
}

/** Columns of a chart, once the rows are known. */
function Columns({ result, chart, onChart }: ColumnsProps): JSX.Element | null {
  const spec = specOf(chart, result.columns, result.rows, result.timestamp);
  if (!spec || !isChartKind(chart.kind)) return null;
  return (
    <ChartControls
      columns={result.columns}
      spec={spec}
      onSpec={(changed) => onChart(chartOf(changed, result.columns))}
      aggregate={undefined}
      onAggregate={() => undefined}
    />
  );
}

interface ChartChoicesProps {
  query: PanelQuery;
  chart: PanelChart;
  onChart: (chart: PanelChart) => void;
}

/** Kind of view and its columns, and the rows as they will look. */
export function ChartChoices({ query, chart, onChart }: ChartChoicesProps): JSX.Element {
  const { result, error } = query.state.value;
  return (
    <>
      <div class="panel-choices">
        <KindSelect chart={chart} onChart={onChart} />
        {result && <Columns result={result} chart={chart} onChart={onChart} />}
      </div>
      <div class="panel-preview">
        {error && <ErrorBox {...error} />}
        {result && (
          <RowsView result={result} chart={chart} group="preview" isZoomedAtServer={false} onZoom={() => undefined} />
        )}
      </div>
    </>
  );
}
