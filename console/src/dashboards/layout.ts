/** Place of a panel in cells of the grid. */
export interface Place {
  x: number;
  y: number;
  w: number;
  h: number;
}

/** Columns of the grid. */
export const COLUMNS = 12;
export const WIDTH_MIN = 2;
export const HEIGHT_MIN = 3;

export function overlaps(a: Place, b: Place): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

/** Returns the place within the grid that is nearest to the wanted one. */
export function withinGrid({ x, y, w, h }: Place): Place {
  const width = Math.max(WIDTH_MIN, Math.min(COLUMNS, w));
  return {
    x: Math.max(0, Math.min(COLUMNS - width, x)),
    y: Math.max(0, y),
    w: width,
    h: Math.max(HEIGHT_MIN, h),
  };
}

/** Puts a panel to a place; panels that overlap it move down, in their order. */
export function placePanel<P extends Place & { id: string }>(panels: P[], id: string, place: Place): P[] {
  const wanted = withinGrid(place);
  const others = panels.filter((panel) => panel.id !== id).sort((a, b) => a.y - b.y || a.x - b.x);
  const placed: Place[] = [wanted];
  const rows = new Map<string, number>();
  for (const panel of others) {
    const free = { ...panel };
    for (let hit = overlap(free, placed); hit; hit = overlap(free, placed)) free.y = hit.y + hit.h;
    placed.push(free);
    rows.set(panel.id, free.y);
  }
  return panels.map((panel) =>
    panel.id === id ? { ...panel, ...wanted } : { ...panel, y: rows.get(panel.id) ?? panel.y },
  );
}

function overlap(place: Place, placed: Place[]): Place | undefined {
  return placed.find((other) => overlaps(place, other));
}

/** Returns the first free place, row by row from the left. */
export function freePlace(panels: Place[], { w, h }: { w: number; h: number }): { x: number; y: number } {
  for (let y = 0; ; y++) {
    for (let x = 0; x + w <= COLUMNS; x++) {
      if (!overlap({ x, y, w, h }, panels)) return { x, y };
    }
  }
}

/** Number of rows down to the end of the lowest panel. */
export function rowCount(panels: Place[]): number {
  return panels.reduce((most, panel) => Math.max(most, panel.y + panel.h), 0);
}

/** Returns the place to which an arrow key moves a panel, or resizes it with Shift. */
export function placeByKey(place: Place, key: string, isResize: boolean): Place | undefined {
  const steps: Record<string, [number, number]> = {
    ArrowLeft: [-1, 0],
    ArrowRight: [1, 0],
    ArrowUp: [0, -1],
    ArrowDown: [0, 1],
  };
  const [dx, dy] = steps[key] ?? [];
  if (dx === undefined || dy === undefined) return undefined;
  return withinGrid(isResize ? sized(place, dx, dy) : { ...place, x: place.x + dx, y: place.y + dy });
}

/** Returns a place of another size with the same left upper corner. */
export function sized(place: Place, dw: number, dh: number): Place {
  return { ...place, w: Math.min(COLUMNS - place.x, place.w + dw), h: place.h + dh };
}
