import { useEffect, useState } from "preact/hooks";
import type { JSX } from "preact";
import { formatMs } from "../ui/format.ts";

/** Time since `since`, a time of `performance.now()`. */
export function Elapsed({ since }: { since: number }): JSX.Element {
  const [now, setNow] = useState(performance.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 100);
    return () => clearInterval(timer);
  }, []);
  return <span class="elapsed">{formatMs(Math.max(0, Math.round(now - since)))}</span>;
}
