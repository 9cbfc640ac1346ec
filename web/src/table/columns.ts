// What is a column, and which of them does this person want to see? The choice stays with the browser, the filter with the address.
import type { ReactNode } from "react";
import { useCallback, useState } from "react";
import { readStored, store as keep } from "../app/stored";

export interface Column<Row> {
  readonly key: string;
  readonly head: string;
  readonly unit?: string;
  readonly width: number;
  readonly number?: boolean;
  readonly mono?: boolean;
  readonly unsortable?: boolean;
  /** Shown only when chosen. */
  readonly optional?: boolean;
  /** Cannot be hidden: the name of the row. */
  readonly fixed?: boolean;
  readonly cell: (row: Row) => ReactNode;
  /** Shown on hover, for what may not fit. */
  readonly title?: (row: Row) => string;
  /** A picture: no words that could need a second line. */
  readonly drawn?: boolean;
  /** 0..1, drawn as a hairline under the number; `null` = none. */
  readonly bar?: (row: Row) => number | null;
  readonly barTone?: "teal" | "blue" | "amber";
}

export type Density = "normal" | "compact";
/** Of a row of two lines, and of each line more; pixels. */
const ROW_HEIGHT: Readonly<Record<Density, number>> = { normal: 32, compact: 26 };
const LINE_HEIGHT: Readonly<Record<Density, number>> = { normal: 14, compact: 12 };

/** Height of a row with room for `lines` lines, at least two. */
export const rowHeight = (density: Density, lines = 2): number => ROW_HEIGHT[density] + (lines - 2) * LINE_HEIGHT[density];

/** Pixels of the widest letter of a row but for W and M, and what a cell keeps free at its sides. */
const LETTER = 8.5;
const PADDING = 16;
/** How narrow columns may become before the table scrolls sideways: their widths leave this much room for longer words. */
export const SHRINK = 0.93;

/** Whether a cell's words may be longer than one line. A text that surely fits needs no box of its own in the document. */
export function mayWrap<Row>(column: Column<Row>, content: ReactNode): boolean {
  if (column.number || column.drawn || content === null || content === undefined) return false;
  if (typeof content !== "string") return true;
  const letters = [...content].reduce((sum, letter) => sum + ((letter.codePointAt(0) ?? 0) < 0x2e80 ? 1 : 2), 0);
  return letters * LETTER > column.width * SHRINK - PADDING;
}

interface TableChoice {
  readonly hidden: readonly string[];
  readonly shown: readonly string[];
  readonly density: Density;
}

const NOTHING: TableChoice = { hidden: [], shown: [], density: "normal" };

export interface TableView extends TableChoice {
  readonly toggle: (column: { key: string; optional?: boolean }) => void;
  readonly setDensity: (density: Density) => void;
}

export function useTableView(name: string): TableView {
  const key = `fairlead.table.${name}`;
  const [choice, setChoice] = useState<TableChoice>(() => readChoice(readStored(key)));
  const store = useCallback(
    (next: TableChoice) => {
      keep(key, JSON.stringify(next));
      setChoice(next);
    },
    [key],
  );
  return {
    ...choice,
    toggle: (column) => store(toggled(choice, column)),
    setDensity: (density) => store({ ...choice, density }),
  };
}

export function readChoice(text: string | null): TableChoice {
  try {
    return { ...NOTHING, ...(JSON.parse(text ?? "{}") as Partial<TableChoice>) };
  } catch {
    return NOTHING;
  }
}

const flip = (keys: readonly string[], key: string) => (keys.includes(key) ? keys.filter((k) => k !== key) : [...keys, key]);

function toggled(choice: TableChoice, column: { key: string; optional?: boolean }): TableChoice {
  return column.optional ? { ...choice, shown: flip(choice.shown, column.key) } : { ...choice, hidden: flip(choice.hidden, column.key) };
}

export function isShown(column: { key: string; optional?: boolean; fixed?: boolean }, choice: Pick<TableChoice, "hidden" | "shown">): boolean {
  if (column.fixed) return true;
  return column.optional ? choice.shown.includes(column.key) : !choice.hidden.includes(column.key);
}
