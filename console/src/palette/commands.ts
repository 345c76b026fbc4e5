import { explainCurrent, focusEditor, runAll, runCurrent } from "../editor/editor.tsx";
import { previewTable } from "../schema/sidebar.tsx";
import { clearHistory, history } from "../state/history.ts";
import { cancelRun } from "../state/run.ts";
import { loadSchema, tables } from "../state/schema.ts";
import { isSidebarOpen, theme, toggleTheme } from "../state/settings.ts";
import { activeTab, closeTab, moveToTab, openTab, tabs, activeTabId } from "../state/tabs.ts";
import { resultView, showTable, view, VIEWS } from "../state/view.ts";
import { EXAMPLES } from "../welcome/examples.ts";
import { openExample } from "../welcome/welcome.tsx";

export interface Command {
  group: string;
  title: string;
  keys?: string;
  run: () => void;
}

const toQuery = (run: () => void) => (): void => {
  view.value = "query";
  run();
};

function generalCommands(): Command[] {
  return [
    { group: "Run", title: "Run the statement at the cursor", keys: "Ctrl Enter", run: toQuery(runCurrent) },
    { group: "Run", title: "Run all statements", keys: "Ctrl Shift Enter", run: toQuery(runAll) },
    { group: "Run", title: "Explain the statement", keys: "Alt E", run: toQuery(() => explainCurrent(false)) },
    { group: "Run", title: "Explain and analyze the statement", run: toQuery(() => explainCurrent(true)) },
    { group: "Run", title: "Cancel the running statement", keys: "Esc", run: () => cancelRun(activeTab.peek().id) },
    { group: "Tab", title: "New tab", keys: "Alt T", run: toQuery(() => openTab()) },
    { group: "Tab", title: "Close the tab", keys: "Alt W", run: () => closeTab(activeTab.peek().id) },
    { group: "Tab", title: "Next tab", keys: "Alt →", run: () => moveToTab(1) },
    { group: "Tab", title: "Previous tab", keys: "Alt ←", run: () => moveToTab(-1) },
    {
      group: "Result",
      title: "Show the rows as a grid",
      keys: "Alt G",
      run: toQuery(() => (resultView.value = "grid")),
    },
    {
      group: "Result",
      title: "Show the rows as a chart",
      keys: "Alt C",
      run: toQuery(() => (resultView.value = "chart")),
    },
    { group: "Console", title: "Move between editor and rows", keys: "F6", run: toQuery(focusEditor) },
    { group: "Console", title: "Dark or light", run: toggleTheme },
    { group: "Console", title: "Theme of the system", run: () => (theme.value = "system") },
    {
      group: "Console",
      title: "Show or hide the sidebar",
      keys: "Alt B",
      run: () => (isSidebarOpen.value = !isSidebarOpen.peek()),
    },
    { group: "Console", title: "Clear the history", run: clearHistory },
    { group: "Console", title: "Read the schema again", run: () => void loadSchema() },
  ];
}

/** Returns all commands, the general ones first. */
export function allCommands(): Command[] {
  const pages = VIEWS.map((name, i) => ({
    group: "Go to",
    title: name[0]?.toUpperCase() + name.slice(1),
    keys: `Alt ${i + 1}`,
    run: () => void (view.value = name),
  }));
  const rows = tables.value.map((table) => ({
    group: "Rows of",
    title: table.name,
    run: toQuery(() => previewTable(table)),
  }));
  const details = tables.value.map((table) => ({
    group: "Details of",
    title: table.name,
    run: () => showTable(table.name),
  }));
  const open = tabs.value.map((tab) => ({
    group: "Open tab",
    title: tab.title,
    run: toQuery(() => (activeTabId.value = tab.id)),
  }));
  const examples = EXAMPLES.map((example) => ({
    group: "Example",
    title: example.title,
    run: () => openExample(example),
  }));
  const past = history.value.slice(0, 50).map((entry) => ({
    group: "History",
    title: entry.sql.replace(/\s+/g, " ").slice(0, 120),
    run: toQuery(() => openTab(`${entry.sql};\n`)),
  }));
  return [...generalCommands(), ...pages, ...rows, ...details, ...open, ...examples, ...past];
}
