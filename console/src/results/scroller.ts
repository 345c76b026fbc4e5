/**
 * Vertical position of a grid with rows of one height.
 *
 * Browsers limit the height of an element (Firefox to 17.8 million pixels, Chromium to 33 million). Above `HEIGHT_MAX`
 * the scroll bar addresses rows by proportion, and the wheel moves by rows, so that single rows stay reachable.
 */
export const HEIGHT_MAX = 8_000_000;

export class RowScroller {
  /** First visible row, with a fraction. */
  first = 0;
  /** The scroll position that was set last; a different one comes from the scroll bar. */
  private expected = 0;

  constructor(
    readonly rowHeight: number,
    public rowCount: number,
    public viewHeight: number,
  ) {}

  get contentHeight(): number {
    return Math.min(HEIGHT_MAX, this.rowCount * this.rowHeight);
  }

  get isScaled(): boolean {
    return this.rowCount * this.rowHeight > HEIGHT_MAX;
  }

  private get lastFirst(): number {
    return Math.max(0, this.rowCount - this.viewHeight / this.rowHeight);
  }

  private get scrollRange(): number {
    return Math.max(1, this.contentHeight - this.viewHeight);
  }

  /** Returns the scroll position of the first row. */
  get scrollTop(): number {
    if (!this.isScaled) return this.first * this.rowHeight;
    return this.lastFirst === 0 ? 0 : (this.first / this.lastFirst) * this.scrollRange;
  }

  moveTo(first: number): void {
    this.first = Math.max(0, Math.min(this.lastFirst, first));
    this.expected = this.scrollTop;
  }

  /** Takes a scroll position of the element. */
  scrolled(scrollTop: number): void {
    if (Math.abs(scrollTop - this.expected) <= 1 && this.isScaled) return;
    this.expected = scrollTop;
    const first = this.isScaled ? (scrollTop / this.scrollRange) * this.lastFirst : scrollTop / this.rowHeight;
    this.first = Math.max(0, Math.min(this.lastFirst, first));
  }

  /** Moves so that a row is visible. */
  reveal(row: number): void {
    const rows = Math.floor(this.viewHeight / this.rowHeight);
    if (row < this.first) this.moveTo(row);
    else if (row > this.first + rows - 1) this.moveTo(row - rows + 1);
  }

  /** Returns the first visible row and the one after the last. */
  visible(overscan: number): [lo: number, hi: number] {
    const lo = Math.max(0, Math.floor(this.first) - overscan);
    const hi = Math.min(this.rowCount, Math.ceil(this.first + this.viewHeight / this.rowHeight) + overscan);
    return [lo, hi];
  }

  /** Returns the distance of a row from the top of the content. */
  topOf(row: number): number {
    return this.scrollTop + (row - this.first) * this.rowHeight;
  }
}
