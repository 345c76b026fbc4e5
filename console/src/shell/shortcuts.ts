import { explainCurrent, focusEditor } from "../editor/editor.tsx";
import { activeRun, cancelRun } from "../state/run.ts";
import { isSidebarOpen } from "../state/settings.ts";
import { activeTab, closeTab, moveToTab, openTab } from "../state/tabs.ts";
import { isPaletteOpen, resultView, view, VIEWS } from "../state/view.ts";

/** Commands of Alt and a key, by the position of the key, so that layouts with other letters behind Alt work. */
const ALT: Record<string, () => void> = {
  KeyT: () => openTab(),
  KeyW: () => closeTab(activeTab.peek().id),
  KeyE: () => explainCurrent(false),
  KeyG: () => void (resultView.value = "grid"),
  KeyC: () => void (resultView.value = "chart"),
  KeyB: () => void (isSidebarOpen.value = !isSidebarOpen.peek()),
  ArrowRight: () => moveToTab(1),
  ArrowLeft: () => moveToTab(-1),
};

function togglePanel(): void {
  const grid = document.querySelector<HTMLElement>(".grid");
  const isInEditor = document.activeElement?.closest(".cm-editor") !== null;
  if (grid && isInEditor) grid.focus();
  else focusEditor();
}

function press(event: KeyboardEvent): void {
  const digit = /^Digit([1-9])$/.exec(event.code)?.[1];
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") isPaletteOpen.value = !isPaletteOpen.peek();
  else if (event.key === "F6") togglePanel();
  else if (event.key === "Escape" && activeRun.peek()?.state === "running" && !isPaletteOpen.peek())
    cancelRun(activeTab.peek().id);
  else if (event.altKey && !event.ctrlKey && digit && VIEWS[Number(digit) - 1])
    view.value = VIEWS[Number(digit) - 1] ?? "query";
  else if (event.altKey && !event.ctrlKey && !event.shiftKey && ALT[event.code]) ALT[event.code]?.();
  else return;
  event.preventDefault();
}

/** Installs the keys of the console. */
export function installShortcuts(): () => void {
  addEventListener("keydown", press, { capture: true });
  return () => removeEventListener("keydown", press, { capture: true });
}
