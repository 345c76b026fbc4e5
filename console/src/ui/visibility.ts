import { signal } from "@preact/signals";

/** False while the browser does not show the page, as in a tab behind another one. */
export const isPageVisible = signal(!document.hidden);

document.addEventListener("visibilitychange", () => void (isPageVisible.value = !document.hidden));
