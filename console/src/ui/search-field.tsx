import type { Signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { Icon } from "./icons.tsx";

interface SearchFieldProps {
  label: string;
  filter: Signal<string>;
  children?: ComponentChildren;
}

/** A field for the text that shown entries contain, with buttons beside it. */
export function SearchField({ label, filter, children }: SearchFieldProps): JSX.Element {
  return (
    <label class="sidebar-search">
      <Icon name="search" size={13} />
      <input
        type="text"
        placeholder={label}
        aria-label={label}
        value={filter.value}
        onInput={(event) => (filter.value = (event.target as HTMLInputElement).value)}
        spellcheck={false}
      />
      {children}
    </label>
  );
}
