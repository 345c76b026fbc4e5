/** A rectangle of cells; `focus` is the cell of the keyboard, `anchor` the opposite corner. */
export interface Selection {
  anchor: CellPosition;
  focus: CellPosition;
}

export interface CellPosition {
  row: number;
  column: number;
}

export interface Bounds {
  top: number;
  bottom: number;
  left: number;
  right: number;
}

export function boundsOf({ anchor, focus }: Selection): Bounds {
  return {
    top: Math.min(anchor.row, focus.row),
    bottom: Math.max(anchor.row, focus.row),
    left: Math.min(anchor.column, focus.column),
    right: Math.max(anchor.column, focus.column),
  };
}

/** Size of the grid, for moves that end at its borders. */
export interface Extent {
  rows: number;
  columns: number;
  pageRows: number;
}

/** Returns the cell that a key moves to; `undefined` for keys that do not move. */
export function movedBy(
  event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey">,
  from: CellPosition,
  extent: Extent,
): CellPosition | undefined {
  const far = event.ctrlKey || event.metaKey;
  const [lastRow, lastColumn] = [extent.rows - 1, extent.columns - 1];
  const target = ((): CellPosition | undefined => {
    switch (event.key) {
      case "ArrowDown":
        return { ...from, row: far ? lastRow : from.row + 1 };
      case "ArrowUp":
        return { ...from, row: far ? 0 : from.row - 1 };
      case "ArrowRight":
        return { ...from, column: far ? lastColumn : from.column + 1 };
      case "ArrowLeft":
        return { ...from, column: far ? 0 : from.column - 1 };
      case "PageDown":
        return { ...from, row: from.row + extent.pageRows };
      case "PageUp":
        return { ...from, row: from.row - extent.pageRows };
      case "Home":
        return { row: far ? 0 : from.row, column: 0 };
      case "End":
        return { row: far ? lastRow : from.row, column: lastColumn };
      default:
        return undefined;
    }
  })();
  if (!target) return undefined;
  return {
    row: Math.max(0, Math.min(lastRow, target.row)),
    column: Math.max(0, Math.min(lastColumn, target.column)),
  };
}
