import type { JSX } from "preact";
import { formatCount, formatMs } from "../ui/format.ts";
import { PANEL_ROWS, type PanelState } from "./panel-query.ts";

/** Number of rows, time and skipped refreshes of a panel. */
export function PanelStatus({ state }: { state: PanelState }): JSX.Element {
  const { result, isRunning, elapsedMs, skipped } = state;
  const hint = `the last request took ${formatMs(elapsedMs)}`;
  return (
    <span class="panel-status">
      {skipped > 0 && (
        <span title="Refreshes that were left out because the last request had not ended">
          {formatCount(skipped)} skipped
        </span>
      )}
      {result?.isCut && <span>first {formatCount(PANEL_ROWS)} rows</span>}
      <span class={isRunning ? "dot running" : state.error ? "dot failed" : "dot done"} title={hint} />
    </span>
  );
}

/** The error of a statement, with the hint of the server. */
export function ErrorBox({ message, hint }: { message: string; hint: string | undefined }): JSX.Element {
  return (
    <div class="panel-error" role="alert">
      {message}
      {hint && <small>{hint}</small>}
    </div>
  );
}
