import { computed } from "@preact/signals";
import type { Version } from "../documents/documents.ts";
import { persisted } from "./storage.ts";

export interface Tab {
  id: string;
  title: string;
  text: string;
  /** The saved query that the tab shows, and the version that was opened. */
  saved?: Version;
}

let sequence = 0;

function newTab(title: string, text: string): Tab {
  sequence += 1;
  return { id: `${Date.now().toString(36)}-${sequence}`, title, text };
}

export const tabs = persisted<Tab[]>("tabs", [newTab("Query 1", "")]);
export const activeTabId = persisted<string>("activeTab", "");

export const activeTab = computed<Tab>(
  () => tabs.value.find((tab) => tab.id === activeTabId.value) ?? (tabs.value[0] as Tab),
);

/** Returns "Query n" with the least n that no tab has. */
function freeTitle(): string {
  const titles = new Set(tabs.peek().map((tab) => tab.title));
  let n = 1;
  while (titles.has(`Query ${n}`)) n += 1;
  return `Query ${n}`;
}

/** Opens a tab, or takes the active one if it is empty. */
export function openTab(text = "", title?: string): void {
  const current = activeTab.peek();
  if (text !== "" && current.text.trim() === "") {
    updateTab(current.id, { text, ...(title ? { title } : {}) });
    activeTabId.value = current.id;
    return;
  }
  const tab = newTab(title ?? freeTitle(), text);
  tabs.value = [...tabs.peek(), tab];
  activeTabId.value = tab.id;
}

export function updateTab(id: string, change: Partial<Omit<Tab, "id">>): void {
  tabs.value = tabs.peek().map((tab) => (tab.id === id ? { ...tab, ...change } : tab));
}

export function closeTab(id: string): void {
  const before = tabs.peek();
  const index = before.findIndex((tab) => tab.id === id);
  const rest = before.filter((tab) => tab.id !== id);
  tabs.value = rest.length > 0 ? rest : [newTab("Query 1", "")];
  if (activeTabId.peek() === id) {
    activeTabId.value = (tabs.peek()[Math.min(index, tabs.peek().length - 1)] as Tab).id;
  }
}

/** Activates the next (1) or previous (-1) tab. */
export function moveToTab(step: number): void {
  const all = tabs.peek();
  const index = all.findIndex((tab) => tab.id === activeTab.peek().id);
  activeTabId.value = (all[(index + step + all.length) % all.length] as Tab).id;
}
