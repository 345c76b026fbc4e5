import type { JSX } from "preact";
import { Dialog } from "../ui/dialog.tsx";

interface DeleteDialogProps {
  name: string;
  onDelete: () => void;
  onClose: () => void;
}

/** Asks before a document is deleted. */
export function DeleteDialog({ name, onDelete, onClose }: DeleteDialogProps): JSX.Element {
  return (
    <Dialog title={`Delete ${name}?`} onClose={onClose}>
      <p>It disappears from the list of all users. Its versions stay in the table console_documents.</p>
      <p class="dialog-buttons">
        <button class="button" onClick={onClose}>
          Cancel
        </button>
        <button class="button primary" onClick={onDelete}>
          Delete
        </button>
      </p>
    </Dialog>
  );
}
