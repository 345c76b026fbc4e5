import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef } from "preact/hooks";
import type { JSX } from "preact";
import { editorExtensions } from "../editor/extensions.ts";

interface SqlFieldProps {
  label: string;
  text: string;
  onChange: (text: string) => void;
  /** Ctrl-Enter. */
  onRun: () => void;
}

/** An SQL editor with completion and error marks for one statement. */
export function SqlField({ label, text, onChange, onRun }: SqlFieldProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const commands = useRef({ onChange, onRun });
  commands.current = { onChange, onRun };
  useEffect(() => {
    const run = (): boolean => (commands.current.onRun(), true);
    const extensions = editorExtensions({
      label,
      run,
      runAll: run,
      lastRun: () => undefined,
      onChange: (changed) => commands.current.onChange(changed),
    });
    const created = new EditorView({
      parent: host.current as HTMLElement,
      state: EditorState.create({ doc: text, extensions }),
    });
    view.current = created;
    return () => created.destroy();
  }, []);
  useEffect(() => {
    const shown = view.current;
    if (!shown || shown.state.doc.toString() === text) return;
    shown.dispatch({ changes: { from: 0, to: shown.state.doc.length, insert: text } });
  }, [text]);
  return <div class="editor sql-field" ref={host} />;
}
