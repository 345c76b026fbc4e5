import { useEffect, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import { isPaletteOpen } from "../state/view.ts";
import { allCommands, type Command } from "./commands.ts";
import { fuzzyScore } from "./fuzzy.ts";

const SHOWN_MAX = 60;

function matching(query: string): Command[] {
  const commands = allCommands();
  if (query.trim() === "") return commands.slice(0, SHOWN_MAX);
  return commands
    .map((command) => ({ command, score: fuzzyScore(query, `${command.group} ${command.title}`) }))
    .filter((entry): entry is { command: Command; score: number } => entry.score !== undefined)
    .sort((a, b) => b.score - a.score)
    .slice(0, SHOWN_MAX)
    .map(({ command }) => command);
}

/** Dialog with all commands, filtered by what is typed. */
export function Palette(): JSX.Element | null {
  if (!isPaletteOpen.value) return null;
  return <PaletteDialog />;
}

function PaletteDialog(): JSX.Element {
  const [query, setQuery] = useState("");
  const [active, setActive] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const commands = matching(query);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  useEffect(() => {
    dialog.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [active, query]);
  const close = (): void => void (isPaletteOpen.value = false);
  const choose = (command: Command | undefined): void => {
    close();
    command?.run();
  };
  const press = (event: KeyboardEvent): void => {
    const last = Math.max(0, commands.length - 1);
    if (event.key === "ArrowDown") setActive(Math.min(last, active + 1));
    else if (event.key === "ArrowUp") setActive(Math.max(0, active - 1));
    else if (event.key === "Enter") choose(commands[active]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      class="palette"
      ref={dialog}
      aria-label="Commands"
      onClose={close}
      onClick={(event) => event.target === dialog.current && close()}
    >
      <input
        type="text"
        placeholder="Type a command, a table or a statement of the history"
        aria-label="Command"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`command-${active}`}
        value={query}
        autoFocus
        spellcheck={false}
        onKeyDown={press}
        onInput={(event) => (setQuery((event.target as HTMLInputElement).value), setActive(0))}
      />
      <div id="palette-list" role="listbox" aria-label="Commands">
        {commands.map((command, i) => (
          <div
            key={i}
            id={`command-${i}`}
            role="option"
            aria-selected={i === active}
            class="palette-item"
            onPointerMove={() => setActive(i)}
            onClick={() => choose(command)}
          >
            <small>{command.group}</small>
            <span>{command.title}</span>
            {command.keys && (
              <span class="keys">
                {command.keys.split(" ").map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </span>
            )}
          </div>
        ))}
        {commands.length === 0 && <p class="tree-note">No command matches.</p>}
      </div>
    </dialog>
  );
}
