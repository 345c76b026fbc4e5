import { forceLinting } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { JSX } from "preact";
import { splitStatements, statementAt } from "../sql/statements.ts";
import { activeRun, runStatements, type Runnable } from "../state/run.ts";
import { activeTab, tabs, updateTab } from "../state/tabs.ts";
import { editorExtensions } from "./extensions.ts";
import { refreshLint } from "./lint.ts";

let view: EditorView | undefined;
let shownTab = "";
const states = new Map<string, EditorState>();

function newState(text: string): EditorState {
  return EditorState.create({
    doc: text,
    extensions: editorExtensions({
      label: "SQL editor",
      lastRun: () => activeRun.peek(),
      run: () => (runCurrent(), true),
      runAll: () => (runAll(), true),
      onChange: (changed) => updateTab(shownTab, { text: changed }),
    }),
  });
}

/** Shows the state of the active tab; a text that was changed from outside replaces the text of the editor. */
function showActiveTab(): void {
  const tab = activeTab.value;
  if (!view) return;
  if (shownTab !== tab.id) {
    if (shownTab) states.set(shownTab, view.state);
    shownTab = tab.id;
    view.setState(states.get(tab.id) ?? newState(tab.text));
  }
  if (view.state.doc.toString() !== tab.text) {
    view.dispatch({
      changes: { from: 0, to: view.state.doc.length, insert: tab.text },
      selection: { anchor: tab.text.length },
    });
  }
  for (const id of states.keys()) {
    if (!tabs.peek().some((open) => open.id === id)) states.delete(id);
  }
}

function selectedStatements(): Runnable[] {
  if (!view) return [];
  const { from, to, empty } = view.state.selection.main;
  const text = view.state.doc.toString();
  if (empty) {
    const statement = statementAt(text, from);
    return statement ? [statement] : [];
  }
  return splitStatements(text.slice(from, to)).map((s) => ({ text: s.text, from: s.from + from }));
}

/** Runs the selected statements, without a selection the statement at the cursor. */
export function runCurrent(): void {
  const statements = selectedStatements();
  if (statements.length > 0) void runStatements(activeTab.peek().id, statements);
}

/** Runs all statements of the active tab, one after another. */
export function runAll(): void {
  const tab = activeTab.peek();
  void runStatements(tab.id, splitStatements(tab.text));
}

/** Shows the plan of the statement at the cursor; `analyze` also runs it. */
export function explainCurrent(analyze: boolean): void {
  const [statement] = selectedStatements();
  if (!statement) return;
  const prefix = analyze ? "EXPLAIN ANALYZE" : "EXPLAIN";
  void runStatements(activeTab.peek().id, [{ text: `${prefix}\n${statement.text}`, from: statement.from }]);
}

/** Inserts a text at the cursor. */
export function insertText(text: string): void {
  if (!view) return;
  view.dispatch(view.state.replaceSelection(text));
  view.focus();
}

export function focusEditor(): void {
  view?.focus();
}

/** Moves the cursor to a position of the text and focuses the editor. */
export function goTo(index: number): void {
  if (!view) return;
  view.dispatch({ selection: { anchor: Math.min(index, view.state.doc.length) }, scrollIntoView: true });
  view.focus();
}

export function Editor(): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    view = new EditorView({ parent: host.current as HTMLElement });
    shownTab = "";
    const stopShowing = effect(showActiveTab);
    const stopLinting = effect(() => {
      if (activeRun.value?.state === "running" || !view) return;
      view.dispatch({ effects: refreshLint.of(null) });
      forceLinting(view);
    });
    view.focus();
    return () => {
      stopShowing();
      stopLinting();
      if (view) states.set(shownTab, view.state);
      view?.destroy();
      view = undefined;
    };
  }, []);
  return <div class="editor" ref={host} />;
}
