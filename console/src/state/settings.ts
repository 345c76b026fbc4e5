import { effect } from "@preact/signals";
import { persisted } from "./storage.ts";

export type Theme = "system" | "light" | "dark";

export const theme = persisted<Theme>("theme", "system");
export const sidebarWidth = persisted("sidebarWidth", 248);
export const editorHeight = persisted("editorHeight", 200);
export const isSidebarOpen = persisted("sidebarOpen", true);

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function apply(): void {
  const dark = theme.value === "dark" || (theme.value === "system" && prefersDark.matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}

effect(apply);
prefersDark.addEventListener("change", apply);

export function isDark(): boolean {
  return document.documentElement.dataset["theme"] === "dark";
}

export function toggleTheme(): void {
  theme.value = isDark() ? "light" : "dark";
}
