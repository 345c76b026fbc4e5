import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { JSX } from "preact";
import { focusEditor, runCurrent } from "../editor/editor.tsx";
import { activeRun, cancelRun, runs } from "../state/run.ts";
import { isSidebarOpen } from "../state/settings.ts";
import { activeTab, activeTabId, closeTab, openTab, tabs, updateTab, type Tab } from "../state/tabs.ts";
import { isPaletteOpen } from "../state/view.ts";
import { Icon } from "../ui/icons.tsx";

function TabButton({ tab, isActive }: { tab: Tab; isActive: boolean }): JSX.Element {
  const isRenaming = useSignal(false);
  const isRunning = runs.value.get(tab.id)?.state === "running";
  const rename = (event: Event): void => {
    isRenaming.value = false;
    const title = (event.target as HTMLInputElement).value.trim();
    if (title) updateTab(tab.id, { title });
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === "Enter") (event.target as HTMLInputElement).blur();
  };
  if (isRenaming.value) {
    return (
      <input
        class="tab-rename"
        type="text"
        aria-label="Name of the tab"
        defaultValue={tab.title}
        autoFocus
        onBlur={rename}
        onKeyDown={press}
      />
    );
  }
  return (
    <div class={isActive ? "tab active" : "tab"}>
      <button
        class="tab-title"
        aria-current={isActive ? "true" : undefined}
        title={`${tab.title} (double-click renames)`}
        onClick={() => (activeTabId.value = tab.id)}
        onDblClick={() => (isRenaming.value = true)}
      >
        {isRunning && <span class="dot running" />}
        {tab.title}
      </button>
      <button
        class="tab-close"
        aria-label={`Close ${tab.title}`}
        title="Close (Alt W)"
        onClick={() => closeTab(tab.id)}
      >
        <Icon name="close" size={11} />
      </button>
    </div>
  );
}

/** Tabs of the query page, and the button that runs. */
/** Opens a tab and moves the focus to its editor, which shows it in the next frame. */
function openEmptyTab(): void {
  openTab();
  requestAnimationFrame(focusEditor);
}

export function TabBar(): JSX.Element {
  const bar = useRef<HTMLDivElement>(null);
  const active = activeTab.value.id;
  useEffect(
    () => bar.current?.querySelector(".tab.active")?.scrollIntoView({ block: "nearest", inline: "nearest" }),
    [active],
  );
  const isRunning = activeRun.value?.state === "running";
  return (
    <div class="tab-bar">
      <button
        class="icon-button"
        aria-label="Sidebar"
        aria-pressed={isSidebarOpen.value}
        title="Sidebar (Alt B)"
        onClick={() => (isSidebarOpen.value = !isSidebarOpen.peek())}
      >
        <Icon name="panel" size={15} />
      </button>
      <div class="tabs" ref={bar}>
        {tabs.value.map((tab) => (
          <TabButton key={tab.id} tab={tab} isActive={tab.id === active} />
        ))}
      </div>
      <button class="icon-button" aria-label="New tab" title="New tab (Alt T)" onClick={openEmptyTab}>
        <Icon name="plus" size={15} />
      </button>
      <span class="spacer" />
      <button
        class="button ghost palette-button"
        title="All commands (Ctrl K)"
        onClick={() => (isPaletteOpen.value = true)}
      >
        <Icon name="search" size={13} /> Commands <kbd>Ctrl K</kbd>
      </button>
      {isRunning ? (
        <button class="button primary run" title="Cancel (Esc)" onClick={() => cancelRun(activeTab.peek().id)}>
          <Icon name="stop" size={12} /> Cancel
        </button>
      ) : (
        <button class="button primary run" title="Run the statement at the cursor (Ctrl Enter)" onClick={runCurrent}>
          <Icon name="play" size={12} /> Run
        </button>
      )}
    </div>
  );
}
