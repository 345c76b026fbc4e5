import type { JSX } from "preact";
import { parameterValue } from "../api/parameters.ts";
import { runCurrent } from "../editor/editor.tsx";
import { positionalParameters } from "../sql/statements.ts";
import { activeRun, parameterTexts, runAgain, setTimeRange, timeRanges } from "../state/run.ts";
import { activeTab } from "../state/tabs.ts";

/** Fields for `$1`, `$2`, … of the active tab, and the range of `:from` and `:to` if one is set. */
export function ParametersBar(): JSX.Element | null {
  const tab = activeTab.value;
  const numbers = tab.text.includes("$") ? positionalParameters(tab.text) : [];
  const range = timeRanges.value.get(tab.id);
  if (numbers.length === 0 && !range) return null;
  const reset = (): void => {
    setTimeRange(tab.id, undefined);
    if (activeRun.peek()) void runAgain(tab.id);
  };
  return (
    <div class="parameters" role="group" aria-label="Parameters">
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
      {range && (
        <span class="parameter">
          <code>:from</code> {range.from.slice(0, 19)} <code>:to</code> {range.to.slice(0, 19)}
          <button class="link" onClick={reset}>
            all times
          </button>
        </span>
      )}
    </div>
  );
}
