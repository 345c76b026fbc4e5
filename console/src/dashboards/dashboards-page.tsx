import { useEffect, useState } from "preact/hooks";
import type { JSX } from "preact";
import { DocumentBar } from "../documents/document-bar.tsx";
import { DocumentList } from "../documents/document-list.tsx";
import type { OpenDocument } from "../documents/document-store.ts";
import { tables } from "../state/schema.ts";
import { runStatements } from "../state/run.ts";
import { activeTab, openTab } from "../state/tabs.ts";
import { openedNames, openName, view } from "../state/view.ts";
import { Icon } from "../ui/icons.tsx";
import { isPageVisible } from "../ui/visibility.ts";
import { DashboardGrid } from "./dashboard-grid.tsx";
import { DEMO_NAME } from "./demo.ts";
import { newPanel, type Dashboard, type Panel } from "./model.ts";
import { bound } from "./panel-statement.ts";
import { PanelEditor } from "./panel-editor.tsx";
import { sessionOf, type Session } from "./session.ts";
import { dashboards } from "./store.ts";
import { TimeControls } from "./time-controls.tsx";
import { useRefresh } from "./use-refresh.ts";
import { VariableFields, VariablesDialog } from "./variables.tsx";
import "../styles/dashboards.css";

const QUERY_POINTS = 800;

/** Opens the statement of a panel in a tab, with the values of its parameters. */
function openQuery(panel: Panel, session: Session): void {
  const statement = bound(panel, session, QUERY_POINTS);
  const sql = "sql" in statement ? statement.sql : panel.sql;
  view.value = "query";
  openTab(`${sql};\n`, panel.title || "Panel");
  void runStatements(activeTab.peek().id, [{ text: sql, from: 0 }]);
}

interface EditButtonsProps {
  session: Session;
  onAdd: () => void;
  onVariables: () => void;
}

function EditButtons({ session, onAdd, onVariables }: EditButtonsProps): JSX.Element {
  const isEditing = session.isEditing.value;
  return (
    <>
      {isEditing && (
        <>
          <button class="button" onClick={onAdd}>
            <Icon name="plus" size={12} /> Add a panel
          </button>
          <button class="button" onClick={onVariables}>
            Variables
          </button>
        </>
      )}
      <button class="button" aria-pressed={isEditing} onClick={() => void (session.isEditing.value = !isEditing)}>
        <Icon name="edit" size={13} /> Edit
      </button>
    </>
  );
}

function DashboardView({ open }: { open: OpenDocument<Dashboard> }): JSX.Element {
  const { name, draft } = open;
  const session = sessionOf(name, draft);
  const refreshes = useRefresh(session.refreshMs.value);
  const [edited, setEdited] = useState<Panel | undefined>(undefined);
  const [isNaming, setNaming] = useState(false);
  const change = (part: Partial<Dashboard>): void => {
    const current = dashboards.open.peek().get(name)?.draft ?? draft;
    dashboards.edit(name, { ...current, ...part });
  };
  useEffect(() => void (session.variables.value = draft.variables), [draft.variables]);
  const isVisible = isPageVisible.value;
  useEffect(() => {
    if (isVisible) session.readLists();
  }, [session.literals.value, session.range.value, isVisible]);
  const apply = (panel: Panel): void => {
    setEdited(undefined);
    const isKnown = draft.panels.some(({ id }) => id === panel.id);
    change({ panels: isKnown ? draft.panels.map((p) => (p.id === panel.id ? panel : p)) : [...draft.panels, panel] });
  };
  return (
    <div class="dashboard">
      <header class="dashboard-head">
        <DocumentBar
          store={dashboards}
          page="dashboards"
          open={open}
          choices={() => session.choices()}
          beforeSave={() => dashboards.edit(name, session.applied(dashboards.open.peek().get(name)?.draft ?? draft))}
        />
        <span class="spacer" />
        <VariableFields variables={draft.variables} session={session} />
        <TimeControls session={session} onRefresh={() => void (refreshes.value += 1)} />
        <EditButtons
          session={session}
          onAdd={() => setEdited(newPanel(draft.panels))}
          onVariables={() => setNaming(true)}
        />
      </header>
      {draft.panels.length === 0 ? (
        <div class="empty-panel">
          <p>This dashboard has no panels.</p>
          <button
            class="button primary"
            onClick={() => {
              session.isEditing.value = true;
              setEdited(newPanel([]));
            }}
          >
            Add the first panel
          </button>
        </div>
      ) : (
        <DashboardGrid
          panels={draft.panels}
          session={session}
          refreshes={refreshes}
          onPanels={(panels) => change({ panels })}
          onEdit={setEdited}
          onRemove={(panel) => change({ panels: draft.panels.filter(({ id }) => id !== panel.id) })}
          onOpenQuery={(panel) => openQuery(panel, session)}
        />
      )}
      {edited && <PanelEditor panel={edited} session={session} onApply={apply} onClose={() => setEdited(undefined)} />}
      {isNaming && (
        <VariablesDialog
          variables={draft.variables}
          onApply={(variables) => (setNaming(false), change({ variables }))}
          onClose={() => setNaming(false)}
        />
      )}
    </div>
  );
}

function Start({ name }: { name: string | undefined }): JSX.Element {
  if (name !== undefined) return <div class="empty-panel">{dashboards.error.value ?? "Loading …"}</div>;
  const hasDemo = dashboards.bundled().has(DEMO_NAME);
  return (
    <div class="empty-panel">
      <p>A dashboard shows the rows of several queries, for a time range and refreshed on their own.</p>
      {hasDemo && (
        <button class="button primary" onClick={() => openName("dashboards", DEMO_NAME)}>
          Open the dashboard of the demo data
        </button>
      )}
    </div>
  );
}

/** The list of dashboards, and the opened one. */
export function DashboardsPage(): JSX.Element {
  const name = openedNames.value.dashboards;
  const open = name === undefined ? undefined : dashboards.open.value.get(name);
  const hasTables = tables.value.length > 0;
  // A bundled dashboard is known once the tables are.
  useEffect(() => {
    if (name !== undefined) void dashboards.load(name);
  }, [name, open === undefined, hasTables]);
  return (
    <div class="page two">
      <DocumentList
        store={dashboards}
        page="dashboards"
        title="Dashboards"
        onCreate={(created) => {
          const draft = dashboards.open.peek().get(created)?.draft;
          if (draft) sessionOf(created, draft).isEditing.value = true;
        }}
      />
      {open ? <DashboardView key={name} open={open} /> : <Start name={name} />}
    </div>
  );
}
