import { signal } from "@preact/signals";
import type { JSX } from "preact";

interface Notice {
  text: string;
  isError: boolean;
}

const notice = signal<Notice | undefined>(undefined);
let timer: ReturnType<typeof setTimeout> | undefined;

/** Shows a short message at the bottom of the page. */
export function notify(text: string, isError = false): void {
  clearTimeout(timer);
  notice.value = { text, isError };
  timer = setTimeout(() => (notice.value = undefined), isError ? 8000 : 2500);
}

export function NoticeArea(): JSX.Element {
  const current = notice.value;
  return (
    <div class="notice-area" role="status" aria-live="polite">
      {current && <div class={current.isError ? "notice error" : "notice"}>{current.text}</div>}
    </div>
  );
}
