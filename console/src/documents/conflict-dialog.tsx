import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { timeText } from "../results/cells.ts";
import { Dialog, NameDialog } from "../ui/dialog.tsx";
import { notify } from "../ui/notice.tsx";
import type { Conflict, DocumentStore } from "./document-store.ts";

interface ConflictDialogProps<T> {
  store: DocumentStore<T>;
  onCopy: (name: string) => void;
  /** Called when the document is the newest version again. */
  onResolved?: (name: string) => void;
}

function conflictText({ name, mine, newest }: Conflict): string {
  const at = `${timeText(newest.savedAt).slice(0, 19)} by ${newest.author}`;
  if (newest.body === null) return `${name} was deleted at ${at}.`;
  const edited = mine ? `You edited version ${mine.version}.` : "Your document is new.";
  return `Version ${newest.version} of ${name} was saved at ${at}. ${edited}`;
}

/** Dialog for a save whose base is not the newest version: overwrite, discard, copy or continue. */
export function ConflictDialog<T>({ store, onCopy, onResolved }: ConflictDialogProps<T>): JSX.Element | null {
  const isCopying = useSignal(false);
  const conflict = store.conflict.value;
  if (!conflict) return null;
  const close = (): void => {
    isCopying.value = false;
    store.conflict.value = undefined;
  };
  const overwrite = async (): Promise<void> => {
    close();
    if (!(await store.save(conflict.name, conflict.newest))) return;
    notify("Saved your version as the newest");
    onResolved?.(conflict.name);
  };
  const takeNewest = (): void => {
    store.takeNewest(conflict);
    onResolved?.(conflict.name);
  };
  if (isCopying.value)
    return <NameDialog title="Save as" name={`${conflict.name} copy`} action="Save" onName={onCopy} onClose={close} />;
  return (
    <Dialog title="A newer version exists" onClose={close}>
      <p>{conflictText(conflict)}</p>
      <p class="muted">Nothing is lost: every saved version can be restored.</p>
      <p class="dialog-buttons">
        <button class="button" onClick={close}>
          Continue editing
        </button>
        <button class="button" onClick={takeNewest}>
          Discard mine
        </button>
        <button class="button" onClick={() => void (isCopying.value = true)}>
          Save mine as …
        </button>
        <button class="button primary" onClick={() => void overwrite()}>
          Save mine as the newest
        </button>
      </p>
    </Dialog>
  );
}
