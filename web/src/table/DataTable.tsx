// A table of Kubernetes things: native markup, sticky head, only the rows in sight in the document.
// Rows have one height. Sorting is the server's; this component shows the state and asks for the next one.
import { type CSSProperties, type KeyboardEvent, useLayoutEffect, useRef, useState } from "react";
import { isAwaited, isTyping, keys } from "../app/keyboard";
import { shown } from "../format/shown";
import { useWords } from "../i18n/locale";
import { nextSort, type Sort } from "../router/query";
import { type Column, type Density, mayWrap, SHRINK } from "./columns";
import { useLines } from "./useLines";
import { scrollTo, windowOf } from "./window";

interface Props<Row> {
  name: string;
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  density?: Density;
  sort?: Sort | null;
  onSort?: (sort: Sort | null) => void;
  selected?: string | null;
  onOpen?: (row: Row) => void;
  /** Keys move between the rows although none opens. */
  walkable?: boolean;
  /** Rows in sight before the table scrolls by itself. */
  maxRows?: number;
  /** The rank of the first row among all pages, from 0. */
  offset?: number;
  total?: number;
  rowClass?: (row: Row) => string | undefined;
  /** Rows are nodes, parents before children: arrows left and right fold, and lead into cells. */
  tree?: TreeRows<Row>;
}

export interface TreeRows<Row> {
  /** From 1. */
  readonly levelOf: (row: Row) => number;
  /** `undefined`: nothing is below it. */
  readonly isOpen: (row: Row) => boolean | undefined;
  readonly onFold: (row: Row, isOpen: boolean) => void;
}

/** Two lines of head, its border, and a horizontal scroll bar. */
const HEAD_MAX = 62;

export function DataTable<Row>(props: Props<Row>) {
  const { name, caption, columns, rows, rowKey, density = "normal", maxRows = 18, offset = 0, onOpen, selected } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [scrolled, setScrolled] = useState(0);
  const { lines, height } = useLines(scroller, density, rows, columns, scrolled);
  const [focused, setFocused] = useState<number | null>(null);
  const asked = columns.reduce((sum, c) => sum + c.width, 0);
  const viewport = Math.min(maxRows, Math.max(1, rows.length)) * height;
  const seen = windowOf(rows.length, height, scrolled, viewport);

  // A step may lead to a row that is not in the document before the scroll has been seen: focus it as soon as it is.
  const wanted = useRef<number | null>(null);
  useLayoutEffect(() => {
    const row = wanted.current === null ? null : scroller.current?.querySelector<HTMLElement>(`tr[data-row="${wanted.current}"]`);
    if (!row) return;
    wanted.current = null;
    row.focus({ preventScroll: true });
  });

  const step = (to: number) => {
    const row = Math.max(0, Math.min(rows.length - 1, to));
    const box = scroller.current;
    if (!box || rows.length === 0) return;
    box.scrollTop = scrollTo(row, height, box.scrollTop, viewport);
    wanted.current = row;
    setFocused(row);
    // An open panel goes along.
    const there = rows[row];
    if (selected && there !== undefined) onOpen?.(there);
  };
  const sideways = (target: HTMLElement, at: number, isRight: boolean) => {
    const row = rows[at];
    const tr = target.closest("tr");
    if (row === undefined || !tr || !props.tree) return;
    const { levelOf, isOpen, onFold } = props.tree;
    const cells = [...tr.querySelectorAll<HTMLElement>("[data-cell]")];
    const cell = cells.indexOf(target);
    if (cell >= 0) (isRight ? (cells[cell + 1] ?? target) : (cells[cell - 1] ?? tr)).focus();
    else if (isOpen(row) === !isRight) onFold(row, isRight);
    else if (isRight) cells[0]?.focus();
    else {
      const parent = rows.slice(0, at).findLastIndex((each) => levelOf(each) < levelOf(row));
      if (parent >= 0) step(parent);
    }
  };
  const onKey = (event: KeyboardEvent<HTMLTableElement>) => {
    const at = Number((event.target as HTMLElement).closest("tr")?.dataset["row"] ?? Number.NaN);
    const move = { ArrowDown: at + 1, ArrowUp: at - 1, j: at + 1, k: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (Number.isNaN(at) || event.metaKey || event.ctrlKey || isTyping(event.target) || isAwaited(keys.state, event.key, performance.now())) return;
    if (event.key === "Enter" && event.target === event.currentTarget.querySelector(`tr[data-row="${at}"]`)) {
      const row = rows[at];
      if (row !== undefined) onOpen?.(row);
    } else if (props.tree && event.key === " " && event.target === event.currentTarget.querySelector(`tr[data-row="${at}"]`)) {
      event.preventDefault();
      const row = rows[at];
      const isOpen = row === undefined ? undefined : props.tree.isOpen(row);
      if (row !== undefined && isOpen !== undefined) props.tree.onFold(row, !isOpen);
    } else if (props.tree && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
      event.preventDefault();
      sideways(event.target as HTMLElement, at, event.key === "ArrowRight");
    } else if (move !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      step(move);
    }
  };

  return (
    <div
      className="table-box"
      ref={scroller}
      style={{ maxHeight: viewport + HEAD_MAX }}
      onScroll={(event) => setScrolled(event.currentTarget.scrollTop)}
      data-testid={`table-${name}`}
    >
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- keys move between the rows */}
      <table className="table" role={props.tree ? "treegrid" : undefined} data-density={density} aria-rowcount={props.total ?? rows.length} onKeyDown={onKey} style={{ minWidth: Math.round(asked * SHRINK), "--lines": lines } as CSSProperties}>
        <caption className="visually-hidden">{caption}</caption>
        <colgroup>
          {columns.map((c) => (
            <col key={c.key} style={{ width: `${(100 * c.width) / asked}%` }} />
          ))}
        </colgroup>
        <Head {...props} />
        <tbody>
          {seen.above > 0 && <tr aria-hidden="true" style={{ height: seen.above }} />}
          {rows.slice(seen.start, seen.end).map((row, i) => {
            const at = seen.start + i;
            const key = rowKey(row);
            return (
              <tr
                key={key}
                data-row={at}
                data-key={key}
                aria-rowindex={offset + at + 2}
                aria-level={props.tree?.levelOf(row)}
                aria-expanded={props.tree?.isOpen(row)}
                aria-selected={selected === undefined ? undefined : selected === key}
                className={props.rowClass?.(row)}
                tabIndex={onOpen || props.walkable ? (at === (focused ?? seen.start) ? 0 : -1) : undefined}
                onFocus={() => setFocused(at)}
                onClick={(event) => {
                  if (!(event.target as HTMLElement).closest("a, button, input") && !getSelection()?.toString()) onOpen?.(row);
                }}
                style={{ height }}
              >
                {columns.map((c) => (
                  <Cell key={c.key} column={c} row={row} isTree={props.tree !== undefined} />
                ))}
              </tr>
            );
          })}
          {seen.below > 0 && <tr aria-hidden="true" style={{ height: seen.below }} />}
        </tbody>
      </table>
    </div>
  );
}

/** Words take more lines where one is too short: rows have room for the longest. */
function Cell<Row>({ column, row, isTree }: { column: Column<Row>; row: Row; isTree: boolean }) {
  const share = column.bar?.(row) ?? null;
  const content = column.cell(row);
  const title = column.title?.(row);
  const kind = `${column.number ? "n" : ""} ${column.mono ? "mono" : ""} ${share === null ? "" : `bar ${column.barTone ?? "teal"}`}`;
  const style = share === null ? undefined : ({ "--share": Math.min(1, Math.max(0, share)) } as CSSProperties);
  const words = typeof content === "string" ? shown(content) : content;
  return (
    <td className={kind} style={style} title={title && shown(title)}>
      {!isTree && mayWrap(column, words) ? <div className="words">{words}</div> : words}
    </td>
  );
}

function Head<Row>({ columns, sort, onSort }: Props<Row>) {
  const { t } = useWords();
  return (
    <thead>
      <tr aria-rowindex={1}>
        {columns.map((c) => {
          const sorted = sort?.key === c.key ? sort : null;
          const label = (
            <>
              {c.head}
              {c.unit && <span className="unit"> {c.unit}</span>}
            </>
          );
          return (
            <th key={c.key} scope="col" className={c.number ? "n" : ""} aria-sort={sorted ? (sorted.descending ? "descending" : "ascending") : undefined} title={c.unit ? `${c.head} (${c.unit})` : c.head}>
              {onSort && !c.unsortable ? (
                <button type="button" className="plain" onClick={() => onSort(nextSort(sort ?? null, c.key, Boolean(c.number)))} aria-label={t("table.sortBy", { column: c.unit ? `${c.head} ${c.unit}` : c.head })}>
                  {label}
                  <span className="arrow" aria-hidden="true">
                    {sorted ? (sorted.descending ? "↓" : "↑") : ""}
                  </span>
                </button>
              ) : (
                label
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}
