import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab, toggleComment } from "@codemirror/commands";
import { bracketMatching, indentOnInput } from "@codemirror/language";
import { lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, StateField, type Extension } from "@codemirror/state";
import {
  Decoration,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  placeholder,
  rectangularSelection,
  type Command,
  type DecorationSet,
} from "@codemirror/view";
import { splitStatements, statementAt } from "../sql/statements.ts";
import type { Run } from "../state/run.ts";
import { completeSql } from "./completion.ts";
import { hoverDescription } from "./hover.ts";
import { sqlLanguage } from "./language.ts";
import { sqlLinter } from "./lint.ts";

const line = Decoration.line({ class: "cm-current-statement" });

function markStatement(state: EditorState): DecorationSet {
  const text = state.doc.toString();
  if (splitStatements(text).length < 2) return Decoration.none;
  const statement = statementAt(text, state.selection.main.head);
  if (!statement) return Decoration.none;
  const [first, last] = [state.doc.lineAt(statement.from), state.doc.lineAt(statement.to)];
  const lines = [];
  for (let n = first.number; n <= last.number; n++) lines.push(line.range(state.doc.line(n).from));
  return Decoration.set(lines);
}

/** Marks the lines of the statement that Ctrl-Enter runs, if the text has several. */
const currentStatement = StateField.define<DecorationSet>({
  create: markStatement,
  update: (marks, change) => (change.docChanged || change.selection ? markStatement(change.state) : marks),
  provide: (field) => EditorView.decorations.from(field),
});

export interface EditorCommands {
  /** Name of the editor for screen readers. */
  label: string;
  run: Command;
  runAll: Command;
  /** The run whose error is marked. */
  lastRun: () => Run | undefined;
  onChange: (text: string) => void;
}

/** Returns the extensions of an SQL editor. */
export function editorExtensions(commands: EditorCommands): Extension {
  return [
    lineNumbers(),
    highlightActiveLineGutter(),
    highlightSpecialChars(),
    history(),
    drawSelection(),
    EditorState.allowMultipleSelections.of(true),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    autocompletion({ override: [completeSql], icons: true, maxRenderedOptions: 80 }),
    rectangularSelection(),
    highlightActiveLine(),
    highlightSelectionMatches(),
    search({ top: true }),
    placeholder("SELECT …   Ctrl-Enter runs the statement, Ctrl-Space completes, Ctrl-K lists the commands"),
    currentStatement,
    hoverDescription,
    sqlLanguage,
    sqlLinter(commands.lastRun),
    EditorView.contentAttributes.of({ "aria-label": commands.label }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) commands.onChange(update.state.doc.toString());
    }),
    keymap.of([
      { key: "Mod-Enter", run: commands.run },
      { key: "Shift-Mod-Enter", run: commands.runAll },
      { key: "Mod-/", run: toggleComment },
      ...closeBracketsKeymap,
      ...defaultKeymap.filter(({ key }) => key !== "Mod-k" && key !== "Ctrl-k"),
      ...searchKeymap,
      ...historyKeymap,
      ...completionKeymap,
      ...lintKeymap,
      indentWithTab,
    ]),
  ];
}
