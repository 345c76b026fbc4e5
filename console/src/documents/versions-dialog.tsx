import { useEffect, useState } from "preact/hooks";
import type { JSX } from "preact";
import { timeText } from "../results/cells.ts";
import { serverState } from "../shell/server-state.ts";
import { Dialog } from "../ui/dialog.tsx";
import { notify } from "../ui/notice.tsx";
import { isChanged, type DocumentStore } from "./document-store.ts";
import { listVersions, type StoredVersion } from "./documents.ts";

interface VersionsDialogProps<T> {
  store: DocumentStore<T>;
  name: string;
  onRestored?: (name: string) => void;
  onClose: () => void;
}

/** The versions of a document; an old one is restored as a new version. */
export function VersionsDialog<T>({ store, name, onRestored, onClose }: VersionsDialogProps<T>): JSX.Element {
  const [versions, setVersions] = useState<StoredVersion[] | undefined>(undefined);
  const [error, setError] = useState<string | undefined>(undefined);
  useEffect(() => {
    listVersions(store.kind, name).then(setVersions, (reason: unknown) => setError(String(reason)));
  }, []);
  const open = store.open.value.get(name);
  const hasChanges = open !== undefined && isChanged(open);
  const isRefused = hasChanges || serverState.value?.isReadOnly === true;
  const restore = async (version: StoredVersion): Promise<void> => {
    onClose();
    if (!(await store.restore(version))) return;
    notify(`Restored version ${version.version}`);
    onRestored?.(name);
  };
  return (
    <Dialog title={`Versions of ${name}`} onClose={onClose}>
      {hasChanges && <p class="muted">Save or discard your changes before you restore a version.</p>}
      <div class="data-table" tabIndex={0} role="region" aria-label="Versions">
        <table>
          <thead>
            <tr>
              <th scope="col" class="right">
                Version
              </th>
              <th scope="col">Saved</th>
              <th scope="col">By</th>
              <th scope="col">
                <span class="visually-hidden">Commands</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {versions?.map((version, i) => (
              <tr key={version.savedAt}>
                <td class="right">{version.version}</td>
                <td>{timeText(version.savedAt).slice(0, 19)}</td>
                <td>{version.author}</td>
                <td class="actions">
                  {i === 0 ? (
                    <span class="muted">newest</span>
                  ) : version.body === null ? (
                    <span class="muted">deleted</span>
                  ) : (
                    <button class="button small" disabled={isRefused} onClick={() => void restore(version)}>
                      Restore
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {error && <p class="error-box">{error}</p>}
    </Dialog>
  );
}
