// What do the charts of one page share? The time range, the crosshair, and one style per entity.
import { createContext, type ReactNode, useContext, useMemo, useState } from "react";
import { useNow } from "../app/clock";
import { useQueryState } from "../router/usequery";
import { ColumnRooms } from "./columns";
import { EntityStyles } from "./series";
import { rangeOf, type TimeRange, type WindowName } from "./range";

type CrosshairListener = (ms: number | null, from: object) => void;

export interface ChartPage {
  readonly range: TimeRange;
  readonly styles: EntityStyles;
  readonly rooms: ColumnRooms;
  readonly point: (ms: number | null, from: object) => void;
  readonly onPoint: (listener: CrosshairListener) => () => void;
  readonly select: (from: number, to: number) => void;
  readonly reset: () => void;
}

const ChartPageContext = createContext<ChartPage | null>(null);
const NOW_MS = 15_000;

export function ChartPageProvider({ fallback, children }: { fallback: WindowName; children: ReactNode }) {
  const [params, set] = useQueryState();
  const now = useNow(NOW_MS);
  const [{ styles, rooms, listeners }] = useState(() => ({ styles: new EntityStyles(), rooms: new ColumnRooms(), listeners: new Set<CrosshairListener>() }));
  const range = rangeOf(params, fallback, now);
  const { from, to, window } = range;
  const page = useMemo<ChartPage>(
    () => ({
      range: { from, to, window },
      styles,
      rooms,
      point: (ms, origin) => {
        for (const listener of listeners) listener(ms, origin);
      },
      onPoint: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      select: (a, b) => set({ from: Math.round(a), to: Math.round(b), window: null }),
      reset: () => set({ from: null, to: null }),
    }),
    [from, to, window, styles, rooms, listeners, set],
  );
  return <ChartPageContext value={page}>{children}</ChartPageContext>;
}

export function useChartPage(): ChartPage {
  const page = useContext(ChartPageContext);
  if (!page) throw new Error("no ChartPageProvider above");
  return page;
}
