import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { JSX } from "preact";
import { openedNames, openName, type View } from "../state/view.ts";
import { NameDialog } from "../ui/dialog.tsx";
import { Icon, type IconName } from "../ui/icons.tsx";
import { notify } from "../ui/notice.tsx";
import { isChanged, type DocumentStore } from "./document-store.ts";
import { importText } from "./transfer.ts";

interface DocumentListProps<T> {
  store: DocumentStore<T>;
  page: View;
  title: string;
  /** Called with the name of a document that was created. */
  onCreate?: (name: string) => void;
}

/** All documents of a kind, with buttons for a new one and for an import. */
export function DocumentList<T>({ store, page, title, onCreate }: DocumentListProps<T>): JSX.Element {
  const isNaming = useSignal(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => void store.refresh(), []);
  const create = (name: string): void => {
    const created = store.create(name);
    openName(page, created);
    onCreate?.(created);
  };
  const importFile = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    try {
      const { name, body } = importText(store.kind, await file.text(), store.parse);
      openName(page, store.create(name, body));
      notify(`Imported ${name}: Save stores it on the server`);
    } catch (error) {
      notify(`${file.name}: ${error instanceof Error ? error.message : String(error)}`, true);
    }
  };
  const opened = openedNames.value[page];
  const open = store.open.value;
  return (
    <nav class="page-list" aria-label={title}>
      <div class="page-list-head">
        <button class="button small" onClick={() => void (isNaming.value = true)}>
          <Icon name="plus" size={12} /> New
        </button>
        <button class="button small" onClick={() => input.current?.click()}>
          <Icon name="import" size={12} /> Import
        </button>
        <input
          ref={input}
          type="file"
          class="visually-hidden"
          accept=".json,application/json"
          aria-label={`File of a ${store.kind}`}
          tabIndex={-1}
          onChange={(event) => {
            const field = event.target as HTMLInputElement;
            void importFile(field.files?.[0]).then(() => void (field.value = ""));
          }}
        />
      </div>
      {store.names().map((name) => {
        const document = open.get(name);
        return (
          <button key={name} aria-current={name === opened ? "true" : undefined} onClick={() => openName(page, name)}>
            <Icon name={page as IconName} size={14} />
            <span>{name}</span>
            {document && isChanged(document) && (
              <small aria-hidden="true" title="Unsaved changes">
                ●
              </small>
            )}
          </button>
        );
      })}
      {store.error.value && <p class="tree-note error-text">{store.error.value}</p>}
      {isNaming.value && (
        <NameDialog
          title={`New ${store.kind}`}
          name={`New ${store.kind}`}
          action="Create"
          onName={create}
          onClose={() => void (isNaming.value = false)}
        />
      )}
    </nav>
  );
}
