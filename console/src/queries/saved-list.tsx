import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { JSX } from "preact";
import { ConflictDialog } from "../documents/conflict-dialog.tsx";
import { DeleteDialog } from "../documents/delete-dialog.tsx";
import type { Version } from "../documents/documents.ts";
import { VersionsDialog } from "../documents/versions-dialog.tsx";
import { serverState } from "../shell/server-state.ts";
import { activeTab, tabs, updateTab } from "../state/tabs.ts";
import { linkOf } from "../state/view.ts";
import { NameDialog } from "../ui/dialog.tsx";
import { formatAgo } from "../ui/format.ts";
import { Icon } from "../ui/icons.tsx";
import { notify } from "../ui/notice.tsx";
import { SearchField } from "../ui/search-field.tsx";
import { linkTab, openSavedQuery, savedQueries, saveTab } from "./saved-queries.ts";

async function copyLink(name: string): Promise<void> {
  await navigator.clipboard.writeText(linkOf("query", name));
  notify("Copied the link");
}

async function remove(name: string): Promise<void> {
  savedQueries.close(name);
  await savedQueries.load(name);
  if (!(await savedQueries.remove(name))) return;
  const linked = tabs.peek().filter((tab) => tab.saved?.name === name);
  linked.forEach(({ id }) => updateTab(id, { saved: undefined }));
  notify(`Deleted ${name}`);
}

/** Loads a query before its versions are shown, so that a restored one replaces the newest. */
async function showVersions(name: string, show: () => void): Promise<void> {
  savedQueries.close(name);
  await savedQueries.load(name);
  show();
}

interface EntryProps {
  version: Version;
  onVersions: () => void;
  onDelete: () => void;
}

function Entry({ version, onVersions, onDelete }: EntryProps): JSX.Element {
  const { name } = version;
  const isShown = activeTab.value.saved?.name === name;
  const isReadOnly = serverState.value?.isReadOnly === true;
  return (
    <li>
      <div class="tree-row">
        <button
          class="tree-table"
          aria-current={isShown ? "true" : undefined}
          title={`Saved by ${version.author}`}
          onClick={() => void openSavedQuery(name)}
        >
          <Icon name="query" size={14} />
          <span class="tree-name">{name}</span>
          <small>{formatAgo(Date.parse(version.savedAt))}</small>
        </button>
        <button class="tree-action" aria-label={`Copy the link of ${name}`} onClick={() => void copyLink(name)}>
          <Icon name="copy" size={12} />
        </button>
        <button
          class="tree-action"
          aria-label={`Versions of ${name}`}
          onClick={() => void showVersions(name, onVersions)}
        >
          <Icon name="history" size={13} />
        </button>
        {!isReadOnly && (
          <button class="tree-action" aria-label={`Delete ${name}`} onClick={onDelete}>
            <Icon name="trash" size={12} />
          </button>
        )}
      </div>
    </li>
  );
}

/** The queries that are stored on the server. */
export function SavedList(): JSX.Element {
  const filter = useSignal("");
  const isNaming = useSignal(false);
  const versionsOf = useSignal<string | undefined>(undefined);
  const deleted = useSignal<string | undefined>(undefined);
  useEffect(() => void savedQueries.refresh(), []);
  const tab = activeTab.value;
  const isReadOnly = serverState.value?.isReadOnly === true;
  const shown = (savedQueries.list.value ?? []).filter(({ name }) =>
    name.toLowerCase().includes(filter.value.toLowerCase()),
  );
  const save = (): void => {
    if (tab.saved) void saveTab(tab, tab.saved.name);
    else isNaming.value = true;
  };
  const refreshTabs = (name: string): void =>
    tabs.peek().forEach(({ id, saved }) => saved?.name === name && linkTab(id, name));
  return (
    <>
      <SearchField label="Find a query" filter={filter} />
      <p class="saved-commands">
        <button class="button small" disabled={isReadOnly || tab.text.trim() === ""} onClick={save}>
          <Icon name="save" size={12} /> {tab.saved ? `Save ${tab.saved.name}` : "Save this tab …"}
        </button>
        {tab.saved && (
          <button class="button small" disabled={isReadOnly} onClick={() => void (isNaming.value = true)}>
            Save as …
          </button>
        )}
      </p>
      <ul class="tree">
        {savedQueries.error.value && <li class="tree-note error-text">{savedQueries.error.value}</li>}
        {shown.length === 0 && <li class="tree-note">No saved queries</li>}
        {shown.map((version) => (
          <Entry
            key={version.name}
            version={version}
            onVersions={() => void (versionsOf.value = version.name)}
            onDelete={() => void (deleted.value = version.name)}
          />
        ))}
      </ul>
      {isNaming.value && (
        <NameDialog
          title="Save the tab on the server"
          name={tab.title}
          action="Save"
          onName={(name) => void saveTab(tab, name)}
          onClose={() => void (isNaming.value = false)}
        />
      )}
      {versionsOf.value !== undefined && (
        <VersionsDialog
          store={savedQueries}
          name={versionsOf.value}
          onRestored={refreshTabs}
          onClose={() => void (versionsOf.value = undefined)}
        />
      )}
      {deleted.value !== undefined && (
        <DeleteDialog
          name={deleted.value}
          onDelete={() => void remove(deleted.value ?? "").then(() => void (deleted.value = undefined))}
          onClose={() => void (deleted.value = undefined)}
        />
      )}
      <ConflictDialog
        store={savedQueries}
        onCopy={(name) => void saveTab(tab, name)}
        onResolved={(name) => linkTab(tab.id, name)}
      />
    </>
  );
}
