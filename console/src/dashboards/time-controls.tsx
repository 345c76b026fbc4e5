import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { ALL_TIMES, rangeLabel, RELATIVE_RANGES, type TimeRange } from "../sql/time-range.ts";
import { Icon } from "../ui/icons.tsx";
import { TimeRangeFields } from "../ui/time-range-fields.tsx";
import { REFRESH_MS } from "./model.ts";
import type { Session } from "./session.ts";

const CUSTOM = "custom";
const ALL = "all";

function valueOf(range: TimeRange): string {
  if (range.from === "" && range.to === "") return ALL;
  return range.to === "now" && RELATIVE_RANGES.some(([from]) => from === range.from) ? range.from : CUSTOM;
}

function RangeSelect({ session }: { session: Session }): JSX.Element {
  const range = session.range.value;
  const entered = useSignal<TimeRange | undefined>(undefined);
  const choose = (value: string): void => {
    entered.value = value === CUSTOM ? range : undefined;
    if (value === ALL) session.setRange(ALL_TIMES);
    else if (value !== CUSTOM) session.setRange({ from: value, to: "now" });
  };
  const apply = (): void => {
    if (entered.value) session.setRange(entered.value);
    entered.value = undefined;
  };
  const value = entered.value ? CUSTOM : valueOf(range);
  return (
    <>
      <label class="field">
        <Icon name="clock" size={14} />
        <select
          value={value}
          aria-label="Time range"
          onChange={(event) => choose((event.target as HTMLSelectElement).value)}
        >
          {RELATIVE_RANGES.map(([from, label]) => (
            <option key={from} value={from}>
              {label}
            </option>
          ))}
          <option value={ALL}>All times</option>
          <option value={CUSTOM}>{valueOf(range) === CUSTOM ? rangeLabel(range) : "From … to …"}</option>
        </select>
      </label>
      {entered.value ? (
        <>
          <TimeRangeFields
            range={entered.value}
            onChange={(changed) => void (entered.value = changed)}
            onEnter={apply}
          />
          <button class="button" onClick={apply}>
            Apply
          </button>
        </>
      ) : (
        value === CUSTOM && (
          <button
            class="icon-button"
            aria-label="Change the time range"
            title="Change the time range"
            onClick={() => void (entered.value = range)}
          >
            <Icon name="edit" size={13} />
          </button>
        )
      )}
    </>
  );
}

function refreshLabel(ms: number): string {
  if (ms === 0) return "No refresh";
  return ms < 1000 ? `Every ${ms} ms` : `Every ${ms / 1000} s`;
}

/** Time range and refresh of a dashboard. */
export function TimeControls({ session, onRefresh }: { session: Session; onRefresh: () => void }): JSX.Element {
  return (
    <>
      <RangeSelect session={session} />
      <label class="field">
        <select
          value={session.refreshMs.value}
          aria-label="Refresh"
          onChange={(event) => void (session.refreshMs.value = Number((event.target as HTMLSelectElement).value))}
        >
          {REFRESH_MS.map((ms) => (
            <option key={ms} value={ms}>
              {refreshLabel(ms)}
            </option>
          ))}
        </select>
      </label>
      <button class="icon-button" aria-label="Refresh now" title="Refresh now" onClick={onRefresh}>
        <Icon name="refresh" size={14} />
      </button>
    </>
  );
}
