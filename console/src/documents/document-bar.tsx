import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { serverState } from "../shell/server-state.ts";
import { linkOf, openName, type View } from "../state/view.ts";
import { NameDialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import { Menu, type MenuItem } from "../ui/menu.tsx";
import { notify } from "../ui/notice.tsx";
import { saveBlob } from "../api/http.ts";
import { ConflictDialog } from "./conflict-dialog.tsx";
import { DeleteDialog } from "./delete-dialog.tsx";
import { isChanged, type DocumentStore, type OpenDocument } from "./document-store.ts";
import { exportText } from "./transfer.ts";
import { VersionsDialog } from "./versions-dialog.tsx";

interface DocumentBarProps<T> {
  store: DocumentStore<T>;
  page: View;
  open: OpenDocument<T>;
  /** Called before a save, to add what belongs to the document but is kept elsewhere. */
  beforeSave?: () => void;
  /** Choices that belong to a link. */
  choices?: () => URLSearchParams;
}

type Question = "copy" | "versions" | "delete" | undefined;

async function copyLink(link: string): Promise<void> {
  await navigator.clipboard.writeText(link);
  notify("Copied the link");
}

function exportFile<T>(store: DocumentStore<T>, { name, draft }: OpenDocument<T>): void {
  const file = `${name.replace(/[^\w-]+/g, "-")}.${store.kind}.json`;
  saveBlob(new Blob([exportText(store.kind, name, draft)], { type: "application/json" }), file);
}

/** Badges with the version of a document and its unsaved changes. */
function State<T>({ open }: { open: OpenDocument<T> }): JSX.Element {
  const version = open.base ? `version ${open.base.version}` : "not on the server";
  return (
    <>
      <span class="badge" title={open.base && `saved by ${open.base.author} at ${open.base.savedAt}`}>
        {version}
      </span>
      {isChanged(open) && <span class="badge changed">unsaved changes</span>}
    </>
  );
}

/** Name and state of a document, and the commands to save, copy, restore, share and delete it. */
export function DocumentBar<T>({ store, page, open, beforeSave, choices }: DocumentBarProps<T>): JSX.Element {
  const question = useSignal<Question>(undefined);
  const { name } = open;
  const isReadOnly = serverState.value?.isReadOnly === true;
  const close = (): void => void (question.value = undefined);
  const save = async (): Promise<void> => {
    beforeSave?.();
    if (await store.save(name)) notify(`Saved version ${store.open.peek().get(name)?.base?.version}`);
  };
  const saveCopy = async (copy: string): Promise<void> => {
    beforeSave?.();
    const created = store.create(copy, (store.open.peek().get(name) ?? open).draft);
    openName(page, created);
    if (await store.save(created)) notify(`Saved ${created}`);
  };
  const remove = async (): Promise<void> => {
    close();
    if (!(await store.remove(name))) return;
    openName(page, undefined);
    notify(`Deleted ${name}`);
  };
  const discard = (): void => {
    store.discard(name);
    if (!store.open.peek().has(name)) openName(page, undefined);
  };
  const items: MenuItem[] = [
    { label: "Save as …", run: () => void (question.value = "copy") },
    ...(open.base ? [{ label: "Versions …", run: () => void (question.value = "versions") }] : []),
    { label: "Copy the link", run: () => void copyLink(linkOf(page, name, choices?.())) },
    { label: "Export as JSON", run: () => exportFile(store, open) },
    ...(isChanged(open) ? [{ label: "Discard the changes", run: discard }] : []),
    ...(open.base ? [{ label: "Delete …", run: () => void (question.value = "delete") }] : []),
  ];
  return (
    <>
      <h1 class="document-name">{name}</h1>
      <State open={open} />
      <button
        class="button primary"
        disabled={isReadOnly}
        title={isReadOnly ? "The server is read-only" : "Save as a new version on the server"}
        onClick={() => void save()}
      >
        Save
      </button>
      <Menu label={`Commands for ${name}`} items={items}>
        <Icon name="more" size={15} />
      </Menu>
      {question.value === "copy" && (
        <NameDialog title="Save as" name={name} action="Save" onName={(copy) => void saveCopy(copy)} onClose={close} />
      )}
      {question.value === "versions" && <VersionsDialog store={store} name={name} onClose={close} />}
      {question.value === "delete" && <DeleteDialog name={name} onDelete={() => void remove()} onClose={close} />}
      <ConflictDialog store={store} onCopy={(copy) => void saveCopy(copy)} />
    </>
  );
}
