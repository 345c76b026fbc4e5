import type { JSX } from "preact";
import { cellText } from "./cells.ts";
import type { ResultPages } from "./pages.ts";

/** The plan of EXPLAIN as text with its indentation. */
export function PlanText({ result }: { result: ResultPages }): JSX.Element {
  const lines = result.loadedIndexes().map((index) => cellText(result.row(index)?.[0] ?? null));
  return (
    <pre class="plan" role="region" tabIndex={0} aria-label="Query plan">
      {lines.map((line, i) => {
        const [, indent = "", operator = "", rest = ""] = /^(\s*)([A-Za-z]+)(.*)$/s.exec(line) ?? [line, "", "", line];
        return (
          <div key={i}>
            {indent}
            <b>{operator}</b>
            {rest}
          </div>
        );
      })}
    </pre>
  );
}
