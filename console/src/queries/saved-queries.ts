import { objectAt, textAt } from "../documents/checks.ts";
import { DocumentStore } from "../documents/document-store.ts";
import { activeTabId, openTab, tabs, updateTab, activeTab, type Tab } from "../state/tabs.ts";
import { openedNames, openName } from "../state/view.ts";
import { notify } from "../ui/notice.tsx";

/** The text of a tab that is stored on the server. */
export interface SavedQuery {
  sql: string;
}

export const savedQueries = new DocumentStore<SavedQuery>({
  kind: "query",
  parse: (json) => ({ sql: textAt(objectAt(json, "the query")["sql"], "sql", "") }),
  empty: () => ({ sql: "" }),
});

/** Opens a saved query in a tab; a tab that shows the query is activated. */
export async function openSavedQuery(name: string): Promise<void> {
  const shown = tabs.peek().find((tab) => tab.saved?.name === name);
  if (shown) activeTabId.value = shown.id;
  else {
    savedQueries.close(name);
    await savedQueries.load(name);
    const open = savedQueries.open.peek().get(name);
    if (!open?.base) {
      notify(savedQueries.error.peek() ?? `there is no query ${name}`, true);
      return;
    }
    openTab(open.draft.sql, name);
    updateTab(activeTab.peek().id, { saved: open.base });
  }
  // The address of the page is that of the tabs again.
  if (openedNames.peek().query === name) openName("query", undefined);
}

/** Saves the text of a tab under a name, as a new version if the tab shows that query. */
export async function saveTab(tab: Tab, name: string): Promise<void> {
  const base = tab.saved?.name === name ? tab.saved : undefined;
  savedQueries.put(name, base, { sql: tab.text });
  if (await savedQueries.save(name)) {
    linkTab(tab.id, name);
    notify(`Saved ${name}`);
  } else if (savedQueries.error.peek()) notify(savedQueries.error.peek() ?? "", true);
}

/** Shows the newest version of an open query in a tab. */
export function linkTab(id: string, name: string): void {
  const open = savedQueries.open.peek().get(name);
  if (open?.base) updateTab(id, { title: name, text: open.draft.sql, saved: open.base });
}
