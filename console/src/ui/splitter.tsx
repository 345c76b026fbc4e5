import type { JSX } from "preact";
import type { Signal } from "@preact/signals";

interface SplitterProps {
  size: Signal<number>;
  min: number;
  max: () => number;
  axis: "x" | "y";
  label: string;
}

/** A bar between two areas; pointer and arrow keys change the size of the first area. */
export function Splitter({ size, min, max, axis, label }: SplitterProps): JSX.Element {
  const set = (value: number): void => {
    size.value = Math.round(Math.max(min, Math.min(max(), value)));
  };
  const drag = (event: PointerEvent): void => {
    const bar = event.currentTarget as HTMLElement;
    const start = (axis === "x" ? event.clientX : event.clientY) - size.peek();
    bar.setPointerCapture(event.pointerId);
    const move = (e: PointerEvent): void => set((axis === "x" ? e.clientX : e.clientY) - start);
    bar.addEventListener("pointermove", move);
    bar.addEventListener("pointerup", () => bar.removeEventListener("pointermove", move), { once: true });
    event.preventDefault();
  };
  const press = (event: KeyboardEvent): void => {
    const [less, more] = axis === "x" ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
    if (event.key === less) set(size.peek() - 16);
    else if (event.key === more) set(size.peek() + 16);
    else return;
    event.preventDefault();
  };
  return (
    <div
      class={`splitter ${axis}`}
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={axis === "x" ? "vertical" : "horizontal"}
      aria-valuenow={size.value}
      aria-valuemin={min}
      onPointerDown={drag}
      onKeyDown={press}
    />
  );
}
