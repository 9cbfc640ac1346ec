// How many lines does a row of a table need? Rows have one height: that of the longest words in sight, so that nothing has to be hovered to be read.
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import { type Column, type Density, rowHeight } from "./columns";

const LINES = 2;
/** What is longer stands whole in the panel of its row. */
const LINES_MAX = 4;

export interface Lines {
  readonly lines: number;
  /** Of a row, in pixels. */
  readonly height: number;
}

/** `box`: the table's scroller; `scrolled`: how far. Lines become more, never fewer, so that rows do not jump to and fro. */
export function useLines<Row>(box: RefObject<HTMLElement | null>, density: Density, rows: readonly Row[], columns: readonly Column<Row>[], scrolled: number): Lines {
  const [lines, setLines] = useState(LINES);
  const [width, setWidth] = useState(0);
  const height = rowHeight(density, lines);
  useEffect(() => {
    const watched = box.current;
    if (!watched) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.round(entry?.contentRect.width ?? 0)));
    observer.observe(watched);
    return () => observer.disconnect();
  }, [box]);
  const before = useRef(height);
  useLayoutEffect(() => {
    const table = box.current;
    if (!table) return;
    // The same rows stay in sight when all become higher.
    if (before.current !== height) table.scrollTo({ top: (table.scrollTop / before.current) * height });
    before.current = height;
    if (lines < LINES_MAX && isCut(table, height)) setLines(lines + 1);
    // oxlint-disable-next-line react/exhaustive-effect-dependencies -- what is in sight, and how wide it is, decides whether it is cut
  }, [box, height, lines, width, rows, columns, scrolled]);
  return { lines, height };
}

/** Words below the last line of their cell, or a row that has grown because they may not be cut. */
function isCut(table: HTMLElement, height: number): boolean {
  const words = [...table.querySelectorAll<HTMLElement>("tbody .words")];
  return words.some((each) => each.scrollHeight > each.clientHeight + 1) || [...table.querySelectorAll<HTMLElement>("tbody tr[data-row]")].some((row) => row.offsetHeight > height + 1);
}
