import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { isPageVisible } from "../ui/visibility.ts";

/**
 * Returns a number that grows with each refresh.
 *
 * A hidden page is not refreshed. When it is shown again, it is refreshed at once.
 */
export function useRefresh(refreshMs: number): Signal<number> {
  const count = useSignal(0);
  const isVisible = isPageVisible.value;
  useEffect(() => {
    if (refreshMs === 0 || !isVisible) return undefined;
    if (count.peek() > 0) count.value += 1;
    const timer = setInterval(() => void (isPageVisible.peek() && (count.value += 1)), refreshMs);
    return () => clearInterval(timer);
  }, [refreshMs, isVisible]);
  return count;
}
