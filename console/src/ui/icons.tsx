import type { JSX } from "preact";

/** Paths of the icons, drawn with a stroke in a square of 24 units. */
const PATHS = {
  query: "M4 6l5 5-5 5M12 18h8",
  schema:
    "M4 7c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3zM4 7v10c0 1.7 3.6 3 8 3s8-1.3 8-3V7M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3",
  import: "M12 3v11M7.5 10L12 14.5 16.5 10M4 15v4a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2v-4",
  export: "M12 14V3M7.5 7.500L12 3l4.5 4.500M4 15v4a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2v-4",
  operations: "M3 12h4l3-8 4 16 3-8h4",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.500L20 20",
  play: "M7 4.500v15l12-7.500z",
  stop: "M6 6h12v12H6z",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2.500M12 19.500V22M2 12h2.500M19.5 12H22M4.9 4.900l1.8 1.800M17.3 17.300l1.8 1.800M4.9 19.100l1.8-1.800M17.3 6.700l1.8-1.8",
  moon: "M20 14.500A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.500z",
  table: "M4 5h16v14H4zM4 10h16M4 14.500h16M10 10v9",
  view: "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6z",
  chart: "M4 4v16h16M7.5 15l3.5-5 3.5 3 5-7",
  history: "M3.5 12a8.5 8.5 0 1 0 2.8-6.300L3.5 8M3.5 3.500V8H8M12 7.500V12l3 2",
  chevron: "M9 6l6 6-6 6",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 12.500l4.5 4.500L19 7.5",
  alert: "M12 4l9.5 16h-19zM12 10v4.500M12 17.200v.3",
  refresh: "M20 12a8 8 0 1 1-2.5-5.800L20 8.500M20 4v4.500h-4.5",
  clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7.500V12l3 2",
  panel: "M4 5h16v14H4zM9.5 5v14",
  detail: "M4 5h16v14H4zM14.5 5v14",
  filter: "M4 5h16l-6 8v6l-4-2v-4z",
  up: "M12 19V5M6 11l6-6 6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  more: "M4.5 12h1M11.5 12h1M18.5 12h1",
  dashboards: "M4 4h7v9H4zM13 4h7v5h-7zM13 11h7v9h-7zM4 15h7v5H4z",
  notebooks: "M6 3h13v18H6zM6 3v18M3.5 8H6M3.5 12H6M3.5 16H6M10 8h6M10 12h6",
  save: "M5 4h11l3 3v13H5zM8 4v5h7V4M8 20v-7h8v7",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  move: "M12 3v18M3 12h18M9 6l3-3 3 3M9 18l3 3 3-3M6 9l-3 3 3 3M18 9l3 3-3 3",
  resize: "M20 10v10H10M20 20L10 10",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  logout: "M10 4H5v16h5M15 8l4 4-4 4M19 12H9",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }): JSX.Element {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Logo({ size = 22 }: { size?: number }): JSX.Element {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" class="logo">
      <rect width="32" height="32" rx="7" />
      <path d="M5 12c3.6-3.4 7.3-3.4 11 0s7.4 3.4 11 0M5 17.500c3.6-3.4 7.3-3.4 11 0s7.4 3.4 11 0M5 23c3.6-3.4 7.3-3.4 11 0s7.4 3.4 11 0" />
    </svg>
  );
}
