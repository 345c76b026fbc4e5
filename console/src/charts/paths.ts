import uPlot from "uplot";

/** Width of a bar position as a part of the distance of two positions. */
const BAR_FILL = 0.8;

/** Returns the distance of neighbouring positions in pixels of the canvas. */
function stepPixels(u: uPlot): number {
  const xs = u.data[0];
  let least = Infinity;
  for (let i = 1; i < xs.length; i++) least = Math.min(least, (xs[i] as number) - (xs[i - 1] as number));
  if (!Number.isFinite(least)) return u.bbox.width / 2;
  return Math.abs(u.valToPos((xs[0] as number) + least, "x", true) - u.valToPos(xs[0] as number, "x", true));
}

/** Draws bars from zero; `count` series stand side by side at each position. */
export function barPaths(count: number): uPlot.Series.PathBuilder {
  return (u, seriesIndex, from, to) => {
    const path = new Path2D();
    const step = stepPixels(u) * BAR_FILL;
    const width = Math.max(1, step / count - (count > 1 ? 1 : 0));
    const scale = u.series[seriesIndex]?.scale ?? "y";
    const zero = u.valToPos(Math.max(0, u.scales[scale]?.min ?? 0), scale, true);
    const shift = (seriesIndex - 1) * (step / count) - step / 2;
    for (let i = from; i <= to; i++) {
      const value = u.data[seriesIndex]?.[i];
      if (value === null || value === undefined) continue;
      const x = u.valToPos(u.data[0][i] as number, "x", true) + shift;
      const y = u.valToPos(value, scale, true);
      path.rect(x, Math.min(y, zero), width, Math.max(1, Math.abs(zero - y)));
    }
    return { stroke: path, fill: path };
  };
}

export interface CandleColors {
  up: string;
  down: string;
}

/** Draws candles from the series open, high, low and close, which are 1 to 4. */
export function drawCandles(u: uPlot, colors: CandleColors): void {
  const { ctx } = u;
  const width = Math.max(2, Math.min(24, stepPixels(u) * 0.65));
  const [xs, opens, highs, lows, closes] = u.data;
  const [from, to] = u.series[0]?.idxs ?? [0, -1];
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  ctx.clip();
  for (let i = from; i <= to; i++) {
    const [open, high, low, close] = [opens?.[i], highs?.[i], lows?.[i], closes?.[i]];
    if (open == null || high == null || low == null || close == null) continue;
    const x = Math.round(u.valToPos(xs[i] as number, "x", true));
    const y = (value: number): number => Math.round(u.valToPos(value, "y", true));
    ctx.fillStyle = close >= open ? colors.up : colors.down;
    ctx.fillRect(x - 0.5 * devicePixelRatio, y(high), devicePixelRatio, Math.max(1, y(low) - y(high)));
    const top = Math.min(y(open), y(close));
    ctx.fillRect(Math.round(x - width / 2), top, Math.round(width), Math.max(1, Math.abs(y(open) - y(close))));
  }
  ctx.restore();
}
