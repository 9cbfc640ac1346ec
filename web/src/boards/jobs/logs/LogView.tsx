// The lines in sight, and no others. It stays at the end while the end is in sight, and at its lines when old ones are let go.
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useWords } from "../../../i18n/locale";
import { scrollTo, windowOf } from "../../../table/window";
import { type Row, rowsOf } from "./lines";
import type { ShownLog } from "./useLog";

const ROW = 18;
const CHAR = 7.3;
const EDGE = 40;

interface Props {
  log: ShownLog;
  wraps: boolean;
  found: readonly number[];
  here: number | undefined;
  label: string;
}

export function LogView({ log, wraps, found, here, label }: Props) {
  const { t } = useWords();
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const dropped = useRef(0);
  const [sight, setSight] = useState({ top: 0, height: 400, columns: 120 });
  const columns = wraps ? sight.columns : null;
  const { lines } = log;
  const rows = useMemo(() => (columns === null ? null : rowsOf(lines, columns)), [lines, columns]);
  const total = rows?.length ?? lines.length;
  const marked = useMemo(() => new Set(found), [found]);
  const look = useCallback(() => {
    const it = box.current;
    if (!it) return;
    atEnd.current = it.scrollTop + it.clientHeight >= it.scrollHeight - 2 * ROW;
    setSight({ top: it.scrollTop, height: it.clientHeight, columns: Math.max(20, Math.floor((it.clientWidth - EDGE) / CHAR)) });
  }, []);
  useLayoutEffect(() => {
    const it = box.current;
    if (!it) return;
    const gone = log.dropped - dropped.current;
    dropped.current = log.dropped;
    if (atEnd.current) it.scrollTop = it.scrollHeight;
    else if (gone > 0) it.scrollTop = Math.max(0, it.scrollTop - gone * ROW);
    look();
    atEnd.current ||= it.scrollTop + it.clientHeight >= it.scrollHeight - 2 * ROW;
  }, [log, look]);
  useLayoutEffect(() => {
    const it = box.current;
    if (!it || here === undefined) return;
    const row = rows ? rows.findIndex(([line]) => line === here) : here;
    it.scrollTop = scrollTo(row, ROW, it.scrollTop, it.clientHeight);
    look();
  }, [here, rows, look]);
  useLayoutEffect(() => {
    const seen = new ResizeObserver(look);
    if (box.current) seen.observe(box.current);
    return () => seen.disconnect();
  }, [look]);
  const { start, end, above, below } = windowOf(total, ROW, sight.top, sight.height);
  const shown: Row[] = rows ? rows.slice(start, end) : lines.slice(start, end).map((l, i) => [start + i, 0, l.text.length] as const);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, and must by keyboard, too
    <div className="log" ref={box} tabIndex={0} role="region" aria-label={label} onScroll={look} data-testid="log">
      <div style={{ height: above }} />
      {shown.map(([line, from, to]) => {
        const it = lines[line];
        if (it === undefined) return null;
        return (
          <div className="line" key={`${log.dropped + line}:${from}`} data-found={marked.has(line) ? (line === here ? "here" : "yes") : undefined}>
            {it.text.slice(from, to)}
            {it.cut > 0 && to === it.text.length && <span className="dim"> {t("logs.lineCut", { count: it.cut })}</span>}
          </div>
        );
      })}
      <div style={{ height: below }} />
    </div>
  );
}
