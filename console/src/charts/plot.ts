import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { ChartKind } from "./choose.ts";
import { axisText, timeLabels, valueText } from "./labels.ts";
import { barPaths, drawCandles } from "./paths.ts";
import type { ChartData } from "./series.ts";

const DARK = [
  "#4cc9c4",
  "#f2a65a",
  "#8fa8ff",
  "#e78ac3",
  "#9ccf6b",
  "#e5d04f",
  "#c79bf2",
  "#f47c7c",
  "#6fb6e8",
  "#c0a87a",
];
const LIGHT = [
  "#0d7f86",
  "#c65d00",
  "#3f5fd0",
  "#b5327f",
  "#4b8510",
  "#937a00",
  "#7d41c2",
  "#c62f2f",
  "#1f76b4",
  "#7c6433",
];

export interface PlotOptions {
  kind: ChartKind;
  width: number;
  height: number;
  isDark: boolean;
  /** Number of the first color. */
  firstColor: number;
  /** Charts with the same key have one cursor. */
  syncKey: string;
  /** Called with a range of the x axis, or `undefined` after a double click. */
  onZoom: (range: [number, number] | undefined) => void;
}

function cssColor(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function colorOf(series: number, isDark: boolean): string {
  const colors = isDark ? DARK : LIGHT;
  return series < 0 ? "transparent" : (colors[series % colors.length] as string);
}

function axes(data: ChartData): uPlot.Axis[] {
  const common = {
    stroke: cssColor("--muted"),
    grid: { stroke: cssColor("--line-faint"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  const { labels } = data;
  const x: uPlot.Axis = { ...common, space: 70 };
  if (data.isTime) x.values = (_, splits, __, ___, step) => timeLabels(splits, step);
  if (labels) {
    x.values = (_, splits) => splits.map((at) => (Number.isInteger(at) ? (labels[at] ?? "").slice(0, 14) : ""));
    x.grid = { show: false };
    x.space = 90;
  }
  return [x, { ...common, size: 64, values: (_, splits) => splits.map(axisText) }];
}

function seriesOf(data: ChartData, { kind, isDark, firstColor }: PlotOptions): uPlot.Series[] {
  const { labels } = data;
  const first: uPlot.Series = labels
    ? { label: data.xName, value: (_, at) => (at === null ? "–" : (labels[at] ?? "")) }
    : { label: data.xName, value: (_, at) => (at === null || at === undefined ? "–" : valueText(at)) };
  if (data.isTime)
    first.value = (_, at) =>
      at === null
        ? "–"
        : new Date(at * 1000)
            .toISOString()
            .replace("T", " ")
            .replace(/(\.000)?Z$/, "");
  return [
    first,
    ...data.series.map(({ name }, i): uPlot.Series => {
      const color = colorOf(i + firstColor, isDark);
      const value: uPlot.Series["value"] = (_, at) => (at === null || at === undefined ? "–" : valueText(at));
      const base: uPlot.Series = {
        label: name,
        stroke: color,
        width: 1.5,
        value,
        points: { show: false },
        spanGaps: false,
      };
      if (kind === "candles") return { ...base, paths: () => null, width: 0 };
      if (kind === "bar" || kind === "histogram")
        return { ...base, fill: color, width: 0, paths: barPaths(data.series.length) };
      if (kind === "scatter")
        return { ...base, paths: () => null, points: { show: true, size: 5, fill: color, width: 0 } };
      return kind === "area" ? { ...base, fill: `${color}33` } : base;
    }),
  ];
}

/** Returns true if the y axis should begin at zero. */
function beginsAtZero(kind: ChartKind): boolean {
  return kind === "bar" || kind === "histogram" || kind === "area";
}

function xRange(data: ChartData, kind: ChartKind): uPlot.Scale.Range | undefined {
  if (kind !== "bar" && kind !== "histogram" && kind !== "candles") return undefined;
  const margin = data.xs.length > 1 ? ((data.xs[1] as number) - (data.xs[0] as number)) * 0.6 : 0.6;
  return (_, min, max) => [min - margin, max + margin];
}

function alignedData(data: ChartData): uPlot.AlignedData {
  return [data.xs, ...data.series.map((series) => series.values)] as uPlot.AlignedData;
}

/**
 * Gives a chart new values. `resetsZoom` shows all of them; otherwise the visible range stays.
 *
 * Charts over categories have names in their axes and must be created again.
 */
export function updatePlot(plot: uPlot, data: ChartData, resetsZoom: boolean): void {
  plot.setData(alignedData(data), resetsZoom);
  if (!resetsZoom) plot.redraw();
}

/** Draws a chart into an element. */
export function createPlot(parent: HTMLElement, data: ChartData, options: PlotOptions): uPlot {
  const range = xRange(data, options.kind);
  const zero = beginsAtZero(options.kind);
  const yRange: uPlot.Scale.Range = (_, min, max) => {
    const [lo, hi] = [min ?? 0, max ?? 1];
    return uPlot.rangeNum(zero ? Math.min(0, lo) : lo, zero ? Math.max(0, hi) : hi, 0.08, true) as [number, number];
  };
  return new uPlot(
    {
      width: options.width,
      height: options.height,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: { x: { time: data.isTime, ...(range ? { range } : {}) }, y: { range: yRange } },
      axes: axes(data),
      series: seriesOf(data, options),
      legend: {
        live: true,
        markers: { width: 0, fill: (_, i) => colorOf(i - 1 < 0 ? -1 : i - 1 + options.firstColor, options.isDark) },
      },
      cursor: {
        sync: { key: options.syncKey, setSeries: false },
        drag: { x: true, y: false, setScale: true },
        bind: { dblclick: (_, __, handler) => (event) => (options.onZoom(undefined), handler(event)) },
      },
      hooks: {
        setSelect: [
          (u) => {
            if (u.select.width < 3) return null;
            options.onZoom([u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")]);
            return null;
          },
        ],
        draw:
          options.kind === "candles"
            ? [(u) => drawCandles(u, { up: cssColor("--good"), down: cssColor("--bad") })]
            : [],
      },
    },
    alignedData(data),
    parent,
  );
}
