import type { JSX } from "preact";
import { parameterValue } from "../api/parameters.ts";
import { runCurrent } from "../editor/editor.tsx";
import { hasTimeRange, positionalParameters } from "../sql/statements.ts";
import { ALL_TIMES } from "../sql/time-range.ts";
import { activeRun, parameterTexts, runAgain, setTimeRange, timeRanges } from "../state/run.ts";
import { activeTab, type Tab } from "../state/tabs.ts";
import { TimeRangeFields } from "../ui/time-range-fields.tsx";

function PositionalFields({ numbers }: { numbers: number[] }): JSX.Element {
  return (
    <>
      {numbers.map((n) => {
        const text = parameterTexts.value[n] ?? "";
        return (
          <label key={n} class="parameter">
            <code>${n}</code>
            <input
              type="text"
              value={text}
              placeholder="null"
              aria-label={`Value of $${n}`}
              spellcheck={false}
              onInput={(event) =>
                (parameterTexts.value = { ...parameterTexts.peek(), [n]: (event.target as HTMLInputElement).value })
              }
              onKeyDown={(event) => event.key === "Enter" && runCurrent()}
            />
            <small>{parameterValue(text === "" ? "null" : text)[0]}</small>
          </label>
        );
      })}
    </>
  );
}

function RangeFields({ tab }: { tab: Tab }): JSX.Element {
  const range = timeRanges.value.get(tab.id);
  const reset = (): void => {
    setTimeRange(tab.id, undefined);
    if (activeRun.peek()) void runAgain(tab.id);
  };
  return (
    <span class="parameter">
      <TimeRangeFields
        range={range ?? ALL_TIMES}
        onChange={(changed) => setTimeRange(tab.id, changed)}
        onEnter={runCurrent}
      />
      {range && (
        <button class="link" onClick={reset}>
          all times
        </button>
      )}
    </span>
  );
}

/** Fields for `$1`, `$2`, … and for `:from` and `:to`, if the active tab has such parameters. */
export function ParametersBar(): JSX.Element | null {
  const tab = activeTab.value;
  const numbers = tab.text.includes("$") ? positionalParameters(tab.text) : [];
  const hasRange = tab.text.includes(":") && hasTimeRange(tab.text);
  if (numbers.length === 0 && !hasRange) return null;
  return (
    <div class="parameters" role="group" aria-label="Parameters">
      <PositionalFields numbers={numbers} />
      {hasRange && <RangeFields key={tab.id} tab={tab} />}
    </div>
  );
}
