import { useEffect, useRef } from "preact/hooks";
import type { ComponentChildren, JSX } from "preact";
import { Icon } from "./icons.tsx";

interface DialogProps {
  title: string;
  onClose: () => void;
  isWide?: boolean;
  children: ComponentChildren;
}

/** A modal dialog; Escape and the button at its title close it. */
export function Dialog({ title, onClose, isWide, children }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current as HTMLDialogElement;
    element.showModal();
    return () => element.close();
  }, []);
  return (
    <dialog class={isWide ? "dialog wide" : "dialog"} ref={dialog} aria-label={title} onCancel={onClose}>
      <header class="dialog-head">
        <h2>{title}</h2>
        <span class="spacer" />
        <button type="button" class="icon-button" aria-label="Close" title="Close (Esc)" onClick={onClose}>
          <Icon name="close" size={14} />
        </button>
      </header>
      {children}
    </dialog>
  );
}

interface NameDialogProps {
  title: string;
  name: string;
  action: string;
  onName: (name: string) => void;
  onClose: () => void;
}

const NAME_CHARS_MAX = 100;

/** Asks for a name. */
export function NameDialog({ title, name, action, onName, onClose }: NameDialogProps): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), []);
  const submit = (event: Event): void => {
    event.preventDefault();
    const entered = field.current?.value.trim() ?? "";
    if (entered === "") return;
    onClose();
    onName(entered);
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="dialog-form" onSubmit={submit}>
        <label>
          Name
          <input ref={field} type="text" defaultValue={name} maxLength={NAME_CHARS_MAX} required autoFocus />
        </label>
        <p class="dialog-buttons">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary">
            {action}
          </button>
        </p>
      </form>
    </Dialog>
  );
}
