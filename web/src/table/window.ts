// Which rows are in the document? Only those in sight and a few around them: a table of 500 rows costs as much as one of 30.

export interface RowWindow {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
  readonly above: number;
  readonly below: number;
}

/** Rows kept above and below those in sight. */
const OVERSCAN = 2;

/** `scrolled` and `viewport` in pixels, rows of one height. `above` and `below` are the pixels that stand for the absent rows. */
export function windowOf(total: number, rowHeight: number, scrolled: number, viewport: number): RowWindow {
  const first = Math.min(Math.floor(Math.max(0, scrolled) / rowHeight), Math.max(0, total - 1));
  const start = Math.max(0, first - OVERSCAN);
  const end = Math.min(total, first + Math.ceil(viewport / rowHeight) + OVERSCAN);
  return { start, end, above: start * rowHeight, below: (total - end) * rowHeight };
}

/** The scroll position that brings a row fully into sight below a head of `headHeight`; unchanged if it is. */
export function scrollTo(row: number, rowHeight: number, scrolled: number, viewport: number): number {
  const top = row * rowHeight;
  if (top < scrolled) return top;
  const bottom = top + rowHeight;
  return bottom > scrolled + viewport ? bottom - viewport : scrolled;
}
