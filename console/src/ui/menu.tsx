import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren, JSX } from "preact";

export interface MenuItem {
  label: string;
  detail?: string;
  run: () => void;
}

interface MenuProps {
  label: string;
  children: ComponentChildren;
  items: MenuItem[];
  onOpen?: () => void;
}

/** A button that opens a list of commands; arrow keys move, Escape closes. */
export function Menu({ label, children, items, onOpen }: MenuProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return undefined;
    root.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const outside = (event: PointerEvent): void => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [isOpen]);

  const press = (event: KeyboardEvent): void => {
    if (!isOpen) return;
    const entries = [...(root.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const at = entries.indexOf(document.activeElement as HTMLElement);
    if (event.key === "Escape") {
      setOpen(false);
      root.current?.querySelector("button")?.focus();
    } else if (event.key === "ArrowDown") entries[(at + 1) % entries.length]?.focus();
    else if (event.key === "ArrowUp") entries[(at - 1 + entries.length) % entries.length]?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const toggle = (): void => {
    if (!isOpen) onOpen?.();
    setOpen(!isOpen);
  };
  const choose = (item: MenuItem): void => {
    setOpen(false);
    item.run();
  };
  return (
    <div class="menu" ref={root} onKeyDown={press}>
      <button class="button ghost" aria-haspopup="menu" aria-expanded={isOpen} title={label} onClick={toggle}>
        {children}
      </button>
      {isOpen && (
        <div class="menu-list" role="menu" aria-label={label}>
          {items.map((item) => (
            <button key={item.label} role="menuitem" class="menu-item" onClick={() => choose(item)}>
              <span>{item.label}</span>
              {item.detail && <small>{item.detail}</small>}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
