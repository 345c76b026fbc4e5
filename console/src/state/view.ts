import { effect, signal } from "@preact/signals";

export const VIEWS = ["query", "schema", "import", "operations"] as const;
export type View = (typeof VIEWS)[number];

function viewOfHash(): View {
  const name = location.hash.slice(2).split("/")[0];
  return VIEWS.find((view) => view === name) ?? "query";
}

export const view = signal<View>(viewOfHash());
/** The table of the schema page. */
export const openedTable = signal<string | undefined>(tableOfHash());
export const isPaletteOpen = signal(false);

export type ResultView = "grid" | "chart";
export const resultView = signal<ResultView>("grid");
/** True if the values of the focused row are shown beside the grid. */
export const isDetailOpen = signal(false);

function tableOfHash(): string | undefined {
  const name = location.hash.slice(2).split("/")[1];
  return name === undefined ? undefined : decodeURIComponent(name);
}

effect(() => {
  const table = view.value === "schema" && openedTable.value ? `/${encodeURIComponent(openedTable.value)}` : "";
  const hash = `#/${view.value}${table}`;
  if (location.hash !== hash && !(location.hash === "" && view.value === "query")) location.hash = hash;
});

addEventListener("hashchange", () => {
  view.value = viewOfHash();
  openedTable.value = tableOfHash();
});

export function showTable(name: string): void {
  openedTable.value = name;
  view.value = "schema";
}
