import type { JSX } from "preact";
import type { Column } from "../api/exec.ts";
import { familyOf } from "../results/cells.ts";
import { CHART_KINDS, ohlcColumns, withKind, type ChartSpec } from "./choose.ts";
import { AGGREGATES, type Aggregate } from "./reduce.ts";

interface ControlsProps {
  columns: Column[];
  spec: ChartSpec;
  onSpec: (spec: ChartSpec) => void;
  aggregate: Aggregate | undefined;
  onAggregate: (aggregate: Aggregate) => void;
  /** Without it the chart is not split. */
  split?: { isOn: boolean; onChange: (isOn: boolean) => void };
}

function Select(props: {
  label: string;
  value: number | string;
  options: [value: number | string, text: string][];
  onChange: (value: string) => void;
}): JSX.Element {
  return (
    <label class="field">
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChange((event.target as HTMLSelectElement).value)}>
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Choice of the kind of chart and of its columns. */
export function ChartControls({ columns, spec, onSpec, aggregate, onAggregate, split }: ControlsProps): JSX.Element {
  const kinds = CHART_KINDS.filter((kind) => kind !== "candles" || ohlcColumns(columns));
  const named = (test: (family: string) => boolean): [number, string][] =>
    columns.flatMap((column, i): [number, string][] => (test(familyOf(column.type)) ? [[i, column.name]] : []));
  const numbers = named((family) => family === "number");
  const toggle = (y: number): void => {
    const isOn = spec.ys.includes(y);
    const ys = isOn ? spec.ys.filter((other) => other !== y) : [...spec.ys, y].sort((a, b) => a - b);
    if (ys.length > 0) onSpec({ ...spec, ys: spec.kind === "histogram" ? [y] : ys });
  };
  const hasValues = spec.kind !== "candles";
  return (
    <div class="chart-controls">
      <div class="switch" role="group" aria-label="Kind of chart">
        {kinds.map((kind) => (
          <button key={kind} aria-pressed={spec.kind === kind} onClick={() => onSpec(withKind(spec, kind, columns))}>
            {kind}
          </button>
        ))}
      </div>
      {spec.kind !== "histogram" && (
        <Select
          label="x"
          value={spec.x}
          options={named((family) => family !== "json")}
          onChange={(x) => onSpec({ ...spec, x: Number(x) })}
        />
      )}
      {hasValues && (
        <div class="chips" role="group" aria-label="Values">
          {numbers.slice(0, 24).map(([i, name]) => (
            <button key={i} class="chip" aria-pressed={spec.ys.includes(i)} onClick={() => toggle(i)}>
              {name}
            </button>
          ))}
        </div>
      )}
      {hasValues && spec.kind !== "histogram" && (
        <Select
          label="series"
          value={spec.group}
          options={[[-1, "one"], ...named((family) => family === "text" || family === "boolean")]}
          onChange={(group) => onSpec({ ...spec, group: Number(group) })}
        />
      )}
      {aggregate && spec.kind !== "candles" && (
        <Select
          label="per pixel"
          value={aggregate}
          options={AGGREGATES.map((name) => [name, name])}
          onChange={(name) => onAggregate(name as Aggregate)}
        />
      )}
      {split && hasValues && spec.ys.length > 1 && (
        <label class="check">
          <input
            type="checkbox"
            checked={split.isOn}
            onChange={(event) => split.onChange((event.target as HTMLInputElement).checked)}
          />{" "}
          one chart each
        </label>
      )}
    </div>
  );
}
