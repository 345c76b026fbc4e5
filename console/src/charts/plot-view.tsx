import { useEffect, useRef } from "preact/hooks";
import type { JSX } from "preact";
import type uPlot from "uplot";
import { isDark, theme } from "../state/settings.ts";
import type { ChartSpec } from "./choose.ts";
import { createPlot, updatePlot } from "./plot.ts";
import type { ChartData } from "./series.ts";

interface PlotProps {
  data: ChartData;
  kind: ChartSpec["kind"];
  firstColor: number;
  /** True if a zoom runs the statement again, so that new values replace the visible range. */
  isZoomedAtServer: boolean;
  /** Charts with the same key have one cursor. */
  syncKey: string;
  onZoom: (range: [number, number] | undefined) => void;
}

/** Height of the legend in pixels before it is drawn. */
const LEGEND_HEIGHT = 34;
const HEIGHT_MIN = 60;

/** A chart that adapts to the size of its container and to the theme. */
export function Plot({ data, kind, firstColor, isZoomedAtServer, syncKey, onZoom }: PlotProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const zoom = useRef(onZoom);
  const isZoomed = useRef(false);
  zoom.current = onZoom;
  // Values of the same series replace those of the chart; everything else creates the chart again.
  const shape = data.labels
    ? data
    : [kind, theme.value, data.xName, ...data.series.map((series) => series.name)].join("\n");
  const drawn = useRef<ChartData>(data);
  useEffect(() => {
    const element = host.current as HTMLDivElement;
    const sizeOf = (): { width: number; height: number } => {
      const legend = element.querySelector<HTMLElement>(".u-legend")?.offsetHeight ?? LEGEND_HEIGHT;
      return { width: Math.max(200, element.clientWidth), height: Math.max(HEIGHT_MIN, element.clientHeight - legend) };
    };
    const zoomed: PlotProps["onZoom"] = (range) => {
      isZoomed.current = range !== undefined;
      zoom.current(range);
    };
    plot.current = createPlot(element, data, {
      kind,
      ...sizeOf(),
      isDark: isDark(),
      firstColor,
      syncKey,
      onZoom: zoomed,
    });
    // The legend has its height only now.
    plot.current.setSize(sizeOf());
    drawn.current = data;
    isZoomed.current = false;
    const observer = new ResizeObserver(() => plot.current?.setSize(sizeOf()));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
    };
  }, [shape]);
  useEffect(() => {
    if (plot.current && drawn.current !== data) updatePlot(plot.current, data, isZoomedAtServer || !isZoomed.current);
    drawn.current = data;
  }, [data]);
  return (
    <div
      class="plot"
      ref={host}
      role="img"
      aria-label={`${kind} chart of ${data.series.map((s) => s.name).join(", ")}`}
    />
  );
}
