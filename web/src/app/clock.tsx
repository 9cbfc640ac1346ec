// What time is it in the cluster? A simulated one runs at its own speed, so ages and "now" come from the server's clock.
import { createContext, type ReactNode, useContext, useEffect, useMemo, useReducer } from "react";
import { useMe } from "../api/queries";

export interface ClusterClock {
  readonly now: () => number;
  readonly speed: number;
}

const ClockContext = createContext<ClusterClock>({ now: () => Date.now(), speed: 1 });

/** A clock that read `at` when the local one read `readAt`. */
export function clusterClock(at: number, speed: number, readAt: number, local: () => number = Date.now): ClusterClock {
  return { speed, now: () => at + (local() - readAt) * speed };
}

export function ClockProvider({ children }: { children: ReactNode }) {
  const me = useMe();
  const clock = useMemo(() => {
    const at = me.data ? Date.parse(me.data.clock.now) : Number.NaN;
    return Number.isNaN(at) ? { now: () => Date.now(), speed: 1 } : clusterClock(at, me.data?.clock.speed ?? 1, me.dataUpdatedAt);
  }, [me.data, me.dataUpdatedAt]);
  return <ClockContext value={clock}>{children}</ClockContext>;
}

export const useClock = (): ClusterClock => useContext(ClockContext);

/** The cluster's time, read anew every `everyMs`. */
export function useNow(everyMs: number): number {
  const clock = useClock();
  const [, tick] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const timer = setInterval(tick, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return clock.now();
}
