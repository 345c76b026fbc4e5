import { useEffect, useState } from "preact/hooks";
import type { JSX } from "preact";
import { ChartChoices } from "../panels/chart-choices.tsx";
import { PanelQuery } from "../panels/panel-query.ts";
import { SqlField } from "../panels/sql-field.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import type { Panel } from "./model.ts";
import { bound } from "./panel-statement.ts";
import type { Session } from "./session.ts";

interface PanelEditorProps {
  panel: Panel;
  session: Session;
  onApply: (panel: Panel) => void;
  onClose: () => void;
}

const PREVIEW_POINTS = 800;

/** Title, statement and view of a panel. */
export function PanelEditor({ panel, session, onApply, onClose }: PanelEditorProps): JSX.Element {
  const [edited, setEdited] = useState(panel);
  const [query] = useState(() => new PanelQuery());
  const change = (part: Partial<Panel>): void => setEdited({ ...edited, ...part });
  const run = (): void => {
    const statement = bound(edited, session, PREVIEW_POINTS);
    if ("sql" in statement) void query.restart(statement.sql);
    else if ("problem" in statement) query.fail(statement.problem, statement.hint);
  };
  useEffect(() => {
    if (panel.sql !== "") run();
    return () => query.cancel();
  }, []);
  return (
    <Dialog title={panel.title ? `Panel ${panel.title}` : "New panel"} onClose={onClose} isWide>
      <label class="panel-title-field">
        Title
        <input
          type="text"
          value={edited.title}
          autoFocus
          onInput={(event) => change({ title: (event.target as HTMLInputElement).value })}
        />
      </label>
      <SqlField label="Statement of the panel" text={edited.sql} onChange={(sql) => change({ sql })} onRun={run} />
      <p class="muted">
        <code>:from</code>, <code>:to</code> are the time range, <code>:interval</code> the length of a bucket of SAMPLE
        BY for the width of the panel, <code>:name</code> is a variable.
      </p>
      <ChartChoices chart={edited.chart} onChart={(chart) => change({ chart })} query={query} />
      <p class="dialog-buttons">
        <button class="button" title="Run the statement (Ctrl Enter)" onClick={run}>
          <Icon name="play" size={12} /> Run
        </button>
        <span class="spacer" />
        <button class="button" onClick={onClose}>
          Cancel
        </button>
        <button class="button primary" onClick={() => onApply(edited)}>
          Apply
        </button>
      </p>
    </Dialog>
  );
}
