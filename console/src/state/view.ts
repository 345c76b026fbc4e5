import { batch, computed, effect, signal } from "@preact/signals";

export const VIEWS = ["query", "dashboards", "notebooks", "schema", "import", "operations"] as const;
export type View = (typeof VIEWS)[number];

/** Name that is open on each page: a saved query, a dashboard, a notebook, a table. */
export type OpenedNames = Partial<Record<View, string>>;

function partOfHash(index: number): string | undefined {
  const part = location.hash.slice(2).split("?")[0]?.split("/")[index];
  return part === undefined || part === "" ? undefined : decodeURIComponent(part);
}

function viewOfHash(): View {
  return VIEWS.find((view) => view === partOfHash(0)) ?? "query";
}

function namesOfHash(): OpenedNames {
  const name = partOfHash(1);
  return name === undefined ? {} : { [viewOfHash()]: name };
}

function choicesOfHash(): URLSearchParams {
  return new URLSearchParams(location.hash.split("?")[1]);
}

export const view = signal<View>(viewOfHash());
export const openedNames = signal<OpenedNames>(namesOfHash());
/** The table of the schema page. */
export const openedTable = computed(() => openedNames.value.schema);
/** Choices after the `?` of the address, such as a time range, until a page takes them. */
let linkedChoices = choicesOfHash();
export const isPaletteOpen = signal(false);

export type ResultView = "grid" | "chart";
/** The chosen view; a result without numbers is a grid in any case. */
export const resultView = signal<ResultView>("grid");
/** True if the values of the focused row are shown beside the grid. */
export const isDetailOpen = signal(false);

/** Address of a page within the console. */
export function hashOf(page: View, name?: string): string {
  return `#/${page}${name === undefined ? "" : `/${encodeURIComponent(name)}`}`;
}

/** Address of a page with the origin, to be shared. */
export function linkOf(page: View, name: string, choices = new URLSearchParams()): string {
  const query = choices.size === 0 ? "" : `?${choices}`;
  return location.origin + location.pathname + hashOf(page, name) + query;
}

effect(() => {
  const hash = hashOf(view.value, openedNames.value[view.value]);
  if (location.hash !== hash && !(location.hash === "" && view.value === "query")) location.hash = hash;
});

addEventListener("hashchange", () => {
  if (location.hash.includes("?")) linkedChoices = choicesOfHash();
  openName(viewOfHash(), partOfHash(1));
});

/** Returns the choices of the address, once. */
export function takeLinkedChoices(): URLSearchParams {
  const taken = linkedChoices;
  linkedChoices = new URLSearchParams();
  return taken;
}

/** Opens a name on a page; `undefined` shows the page without one. */
export function openName(page: View, name: string | undefined): void {
  batch(() => {
    openedNames.value = { ...openedNames.peek(), [page]: name };
    view.value = page;
  });
}

export function showTable(name: string): void {
  openName("schema", name);
}
