// What time is it in the cluster? A simulated one runs at its own speed or stands still, so ages and "now" come from the server's clock.
import { createContext, type ReactNode, useContext, useEffect, useMemo, useReducer } from "react";
import { useClockFace, useMe } from "../api/queries";
import type { ClockFace } from "../api/types";

export interface ClusterClock {
  readonly now: () => number;
  readonly speed: number;
}

const ClockContext = createContext<ClusterClock>({ now: () => Date.now(), speed: 1 });

/** A clock that read `at` when the local one read `readAt`. */
export function clusterClock(at: number, speed: number, readAt: number, local: () => number = Date.now): ClusterClock {
  return { speed, now: () => at + (local() - readAt) * speed };
}

/** Speed of counting on from an answer: 0 while time is paused, and in a run, whose speed is unknown. */
export function countingSpeed(face: ClockFace): number {
  return face.isPaused || face.until !== null ? 0 : face.speed;
}

export function ClockProvider({ children }: { children: ReactNode }) {
  const me = useMe();
  const own = useClockFace();
  const isOwnNewer = own.data !== undefined && own.dataUpdatedAt >= me.dataUpdatedAt;
  const [face, readAt] = isOwnNewer ? [own.data, own.dataUpdatedAt] : [me.data?.clock, me.dataUpdatedAt];
  const clock = useMemo(() => {
    const at = face ? Date.parse(face.now) : Number.NaN;
    return !face || Number.isNaN(at) ? { now: () => Date.now(), speed: 1 } : clusterClock(at, countingSpeed(face), readAt);
  }, [face, readAt]);
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
