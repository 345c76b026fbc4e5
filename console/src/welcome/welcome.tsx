import type { JSX } from "preact";
import { focusEditor } from "../editor/editor.tsx";
import { runStatements } from "../state/run.ts";
import { tables } from "../state/schema.ts";
import { activeTab, openTab } from "../state/tabs.ts";
import { resultView, view } from "../state/view.ts";
import { Icon } from "../ui/icons.tsx";
import { EXAMPLES, type Example } from "./examples.ts";

/** Opens an example in a tab and runs it. */
export function openExample(example: Example): void {
  view.value = "query";
  openTab(`-- ${example.title}\n${example.sql};\n`, example.title);
  resultView.value = example.isChart ? "chart" : "grid";
  const tab = activeTab.peek();
  const from = tab.text.indexOf("\n") + 1;
  void runStatements(tab.id, [{ text: example.sql, from }]);
  requestAnimationFrame(focusEditor);
}

/** The lower half of the query page before the first run. */
export function Welcome(): JSX.Element {
  const hasDemo =
    tables.value.some((table) => table.name === "cpu") && tables.value.some((table) => table.name === "readings");
  return (
    <section class="welcome" aria-label="Welcome">
      <div class="welcome-head">
        <h2>{hasDemo ? "Examples over the demo data" : "Nothing has run in this tab yet"}</h2>
        <p class="muted">
          <kbd>Ctrl</kbd> <kbd>Enter</kbd> run · <kbd>Ctrl</kbd> <kbd>Space</kbd> complete · <kbd>Ctrl</kbd>{" "}
          <kbd>K</kbd> all commands
        </p>
      </div>
      {hasDemo ? (
        <div class="examples">
          {EXAMPLES.map((example) => (
            <button key={example.title} class="example" onClick={() => openExample(example)}>
              <span class="example-title">
                <Icon name={example.isChart ? "chart" : "table"} size={14} /> {example.title}
              </span>
              <span class="example-shows">{example.shows}</span>
              <code>{example.sql.split("\n").slice(0, 3).join("\n")}</code>
            </button>
          ))}
        </div>
      ) : (
        <NoData />
      )}
    </section>
  );
}

function NoData(): JSX.Element {
  return (
    <div class="first-steps">
      <button class="example" onClick={() => (view.value = "import")}>
        <span class="example-title">
          <Icon name="import" size={14} /> Import a CSV file
        </span>
        <span class="example-shows">drop a file; names and types are found</span>
      </button>
      <button
        class="example"
        onClick={() =>
          openTab(
            "CREATE TABLE trades (\n  ts TIMESTAMP,\n  symbol SYMBOL,\n  price DOUBLE\n) TIMESTAMP(ts) PARTITION BY DAY;\n",
          )
        }
      >
        <span class="example-title">
          <Icon name="table" size={14} /> Create a table
        </span>
        <span class="example-shows">opens a statement to edit</span>
      </button>
      <button
        class="example"
        onClick={() =>
          openTab(
            "SELECT x, timestamp_sequence('2024-01-01', 1000000) AS ts, rnd_double() AS value\nFROM long_sequence(10000);\n",
          )
        }
      >
        <span class="example-title">
          <Icon name="play" size={14} /> Generate rows
        </span>
        <span class="example-shows">no table is needed</span>
      </button>
    </div>
  );
}
