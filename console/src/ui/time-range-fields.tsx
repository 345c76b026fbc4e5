import type { JSX } from "preact";
import { resolveTime, type TimeRange } from "../sql/time-range.ts";

interface TimeRangeFieldsProps {
  range: TimeRange;
  onChange: (range: TimeRange) => void;
  onEnter: () => void;
}

const HINT = "now, now-15m, 2024-01-31 or 2024-01-31 12:30:00 (UTC); empty: no bound";

/** Fields for the values of `:from` and `:to`. */
export function TimeRangeFields({ range, onChange, onEnter }: TimeRangeFieldsProps): JSX.Element {
  const field = (name: "from" | "to", placeholder: string): JSX.Element => {
    const text = range[name];
    const isValid = text.trim() === "" || resolveTime(text, Date.now()) !== undefined;
    return (
      <label class="parameter">
        <code>:{name}</code>
        <input
          type="text"
          class="time-field"
          value={text}
          placeholder={placeholder}
          aria-label={`Value of :${name}`}
          aria-invalid={!isValid}
          title={HINT}
          spellcheck={false}
          onInput={(event) => onChange({ ...range, [name]: (event.target as HTMLInputElement).value })}
          onKeyDown={(event) => event.key === "Enter" && onEnter()}
        />
      </label>
    );
  };
  return (
    <>
      {field("from", "start")}
      {field("to", "end")}
    </>
  );
}
