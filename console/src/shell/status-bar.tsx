import type { JSX } from "preact";
import { tables } from "../state/schema.ts";
import { formatCount } from "../ui/format.ts";
import { serverState } from "./server-state.ts";

/** Server and version at the bottom of the page. */
export function StatusBar(): JSX.Element {
  const state = serverState.value;
  const dot = state === undefined ? "idle" : !state.isReachable || state.problem ? "failed" : "done";
  const count = tables.value.length;
  return (
    <footer class="status-bar">
      <span>
        <span class={`dot ${dot}`} /> {location.host}
      </span>
      {state?.problem && <span class="error-text">{state.problem}</span>}
      {state?.isReadOnly && <span class="badge">read-only</span>}
      <span class="spacer" />
      <span>
        {formatCount(count)} {count === 1 ? "table" : "tables"}
      </span>
      <span>Times are UTC</span>
      {state?.version && <span>Tidalite {state.version}</span>}
    </footer>
  );
}
