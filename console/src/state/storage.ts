import { effect, signal, type Signal } from "@preact/signals";

function read<T>(key: string, fallback: T): T {
  try {
    const text = localStorage.getItem(key);
    return text === null ? fallback : (JSON.parse(text) as T);
  } catch {
    return fallback;
  }
}

/** Returns a signal that is kept in localStorage. Writes are delayed, and done at once when the page is hidden. */
export function persisted<T>(name: string, fallback: T): Signal<T> {
  const key = `tidalite.${name}`;
  const state = signal(read(key, fallback));
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isFirst = true;
  const save = (): void => {
    clearTimeout(timer);
    timer = undefined;
    try {
      localStorage.setItem(key, JSON.stringify(state.peek()));
    } catch {
      // Storage is full or refused: the state lasts as long as the page.
    }
  };
  effect(() => {
    state.value;
    if (isFirst) isFirst = false;
    else timer ??= setTimeout(save, 300);
  });
  addEventListener("pagehide", () => {
    if (timer !== undefined) save();
  });
  return state;
}
