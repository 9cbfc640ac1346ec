// One log being read: its lines, how it fares. The reader takes what comes; who leaves ends the request.
import { useCallback, useEffect, useState } from "react";
import { ApiError, openStream } from "../../../api/fetch";
import { type LogLine, LogLines } from "./lines";

/** Time between two renderings; a log may arrive faster than it can be read. */
const DRAW_MS = 200;

export type LogState = { readonly is: "opening" | "open" | "ended" } | { readonly is: "failed"; readonly error: ApiError };

/** What is drawn of a log. `dropped` older lines stood before `lines`. */
export interface ShownLog {
  readonly lines: readonly LogLine[];
  readonly dropped: number;
  readonly bytes: number;
}

const NOTHING: ShownLog = { lines: [], dropped: 0, bytes: 0 };

export interface ReadLog {
  readonly shown: ShownLog;
  readonly state: LogState;
  readonly again: () => void;
}

/** `address` null: nothing is read. `run` another number: it is read anew. */
export function useLog(address: string | null, run: number): ReadLog {
  const [state, setState] = useState<LogState>({ is: "opening" });
  const [shown, setShown] = useState(NOTHING);
  const [tries, setTries] = useState(0);
  const question = address === null ? null : `${address}#${run}.${tries}`;
  useEffect(() => {
    const lines = new LogLines();
    setState({ is: "opening" });
    setShown(NOTHING);
    if (question === null) return undefined;
    const leaving = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const draw = () => {
      timer = undefined;
      setShown({ lines: [...lines.kept], dropped: lines.dropped, bytes: lines.bytes });
    };
    const read = async () => {
      const body = await openStream(question, leaving.signal);
      setState({ is: "open" });
      for (;;) {
        // oxlint-disable-next-line no-await-in-loop -- pieces come one after the other
        const { done, value } = await body.read();
        if (done) break;
        lines.feed(value);
        timer ??= setTimeout(draw, DRAW_MS);
      }
      lines.end();
      setState({ is: "ended" });
    };
    read()
      .catch((cause: unknown) => {
        if (leaving.signal.aborted) return;
        lines.end();
        setState({ is: "failed", error: cause instanceof ApiError ? cause : new ApiError(0, "unreachable", String((cause as Error).message), null, null) });
      })
      .finally(() => {
        if (!leaving.signal.aborted) draw();
      });
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [question]);
  return { shown, state, again: useCallback(() => setTries((n) => n + 1), []) };
}
