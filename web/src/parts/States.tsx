// Loading, empty, failed, partial: four states that never mix. A panel with old data keeps it while new data is on the way.
import { type Query, useQueryClient } from "@tanstack/react-query";
import { Button } from "antd";
import { type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { ApiError } from "../api/fetch";
import type { Warning } from "../api/types";
import { BOARDS, boardAbove } from "../app/boards";
import { useWords } from "../i18n/locale";
import { Link } from "../router/Link";
import { usePlace } from "../router/router";
import { Copied } from "./Copy";

const STILL_LOADING_MS = 10_000;

export interface Asked<T> {
  readonly data: T | undefined;
  readonly error: Error | null;
  /** Errors of this query so far. */
  readonly errorUpdateCount: number;
  readonly refetch: () => unknown;
}

/** Shows the answer if there is one; else why not. `bones` is the shape of what comes. */
export function Answered<T>({ asked, bones, children }: { asked: Asked<T>; bones?: ReactNode; children: (data: T) => ReactNode }) {
  const error = useLastError(asked);
  if (asked.data !== undefined) return children(asked.data);
  if (error) return <Failed error={error} onRetry={asked.refetch} />;
  return <Loading>{bones}</Loading>;
}

/** The error of this query, also while the query is sent again: the message, and the focus in it, stay until the next answer. */
function useLastError({ error, errorUpdateCount: count }: Asked<unknown>): Error | null {
  const [last, setLast] = useState({ error, count });
  if (error && error !== last.error) setLast({ error, count });
  return error ?? (count > 0 && count === last.count ? last.error : null);
}

export function Loading({ children }: { children?: ReactNode }) {
  const { t } = useWords();
  const [long, setLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), STILL_LOADING_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div data-testid="state-loading" role="status" aria-label={t("state.loading")}>
      {children ?? <Bones lines={4} />}
      {long && <p className="state">{t("state.stillLoading")}</p>}
    </div>
  );
}

export function Bones({ lines }: { lines: number }) {
  return (
    <div className="bones" aria-hidden="true">
      {Array.from({ length: lines }, (_, i) => (
        <div className="bone" key={i} style={{ width: `${92 - ((i * 17) % 40)}%` }} />
      ))}
    </div>
  );
}

/** Why nothing is here, and one thing to do about it. */
export function Empty({ why, children }: { why: string; children?: ReactNode }) {
  return (
    <div className="state" data-testid="state-empty">
      <b>{why}</b>
      {children}
    </div>
  );
}

const faultOf = (error: Error): ApiError => (error instanceof ApiError ? error : new ApiError(0, "bug", error.message, null, null));

export function useFaultWords(): (fault: ApiError) => string {
  const { code } = useWords();
  return (fault) => code("error", fault.code, { status: fault.status, error: fault.message }, fault.message);
}

/** The server failed as a whole, not only this answer; the page shows that once. */
const OF_SERVER: readonly string[] = ["unreachable", "not-ready", "proxy"];
export const isOfServer = (error: Error | null): boolean => error !== null && OF_SERVER.includes(faultOf(error).code);

export function Failed({ error, onRetry }: { error: Error; onRetry: () => unknown }) {
  if (isOfServer(error)) return <NoAnswer />;
  return <OwnFault error={error} onRetry={onRetry} />;
}

function NoAnswer() {
  const { t } = useWords();
  return (
    <p className="state" data-testid="state-no-answer">
      {t("state.noAnswer")}
    </p>
  );
}

/** The server as a whole: one error for the page, however many answers it owes. What was there stays.
 * A query without data loses its error when it is sent again: the banner, and the focus in it, stay until the next answer. */
export function ServerTrouble() {
  const client = useQueryClient();
  const cache = client.getQueryCache();
  const last = useRef<{ query: Query; error: Error } | null>(null);
  const failed = useSyncExternalStore(
    (heard) => cache.subscribe(heard),
    () => {
      const active = cache.findAll({ type: "active" });
      const query = active.find(({ state }) => isOfServer(state.error));
      if (query?.state.error) last.current = { query, error: query.state.error };
      else if (!last.current || !active.includes(last.current.query) || last.current.query.state.status !== "pending") last.current = null;
      return last.current?.error ?? null;
    },
  );
  const { t } = useWords();
  const words = useFaultWords();
  if (!failed) return null;
  const fault = faultOf(failed);
  return (
    <div className="banner broken server" role="alert" data-testid="state-server">
      <span>
        {words(fault)} <span className="hint">{t("state.shownIsOld")}</span> <RequestId of={fault} />
      </span>
      <button type="button" className="link" onClick={() => void client.refetchQueries({ type: "active" })}>
        {t("action.retry")}
      </button>
    </div>
  );
}

/** Identifies the failure in the server's log. */
function RequestId({ of: { requestId } }: { of: ApiError }) {
  const { t } = useWords();
  if (!requestId) return null;
  return (
    <span className="hint" data-testid="request-id">
      {t("state.requestId")} <Copied text={requestId} />
    </span>
  );
}

function OwnFault({ error, onRetry }: { error: Error; onRetry: () => unknown }) {
  const { code } = useWords();
  const words = useFaultWords();
  const fault = faultOf(error);
  const said = words(fault);
  return (
    <div className="state" data-testid="state-error" role="alert">
      <b>{said}</b>
      {fault.hint && <div>{code("hint", fault.code, { hint: fault.hint }, fault.hint)}</div>}
      {fault.code === "malformed" && !said.includes(fault.message) && (
        <div className="mono" lang="en">
          {fault.message}
        </div>
      )}
      <div>
        <RequestId of={fault} />
      </div>
      <div className="actions">
        <WayOut fault={fault} onRetry={onRetry} />
      </div>
    </div>
  );
}

/** What can help: another address where this one is wrong, asking again where the server was. */
function WayOut({ fault, onRetry }: { fault: ApiError; onRetry: () => unknown }) {
  const { t } = useWords();
  const { path, query } = usePlace();
  const above = BOARDS.find((board) => board.path === boardAbove(path));
  const isAddressWrong = fault.status === 404 || fault.status === 400;
  if (isAddressWrong && above) return <Link to={above.path}>{t("action.toList", { list: t(above.title) })}</Link>;
  if (isAddressWrong && query) return <Link to={path}>{t("action.clearAddress")}</Link>;
  return <Button onClick={() => onRetry()}>{t("action.retry")}</Button>;
}

/** Missing parts of otherwise good data. Several answers of a page may have the same warning: it is shown once. */
export function Warnings({ of: lists }: { of: readonly (readonly Warning[] | undefined)[] }) {
  const seen = new Map<string, Warning>();
  for (const warning of lists.flatMap((list) => list ?? []).filter(({ code }) => code !== IN_PAST_BAR)) seen.set(`${warning.code} ${warning.source ?? ""}`, warning);
  return [...seen.entries()].map(([key, warning]) => <WarningBanner key={key} warning={warning} />);
}

/** Known gaps in numbers that are still good; they are shown without a box. */
const QUIET: readonly string[] = ["series-missing", "truncated", "not-kept"];
/** The bar of the time slider has it in its own words. */
const IN_PAST_BAR = "past-gap";

function WarningBanner({ warning }: { warning: Warning }) {
  const { code } = useWords();
  const values = { source: warning.source ?? "", message: warning.message, ...warning.values };
  const is = warning.code === "cache-syncing" && warning.values["state"] === "syncing" ? "source-syncing" : warning.code;
  return (
    <div className={QUIET.includes(warning.code) ? "banner quiet" : "banner"} role="status" data-testid="state-partial">
      <span>
        {code("warning", is, values, warning.message)} {warning.hint && <span className="hint">{code("hint", warning.code, { ...values, hint: warning.hint }, warning.hint)}</span>}
      </span>
    </div>
  );
}

/** New data could not be read; what is on screen is from before. */
export function FailedRefresh({ asked }: { asked: readonly Asked<unknown>[] }) {
  const { t } = useWords();
  const words = useFaultWords();
  const failed = asked.find((a) => a.data !== undefined && a.error && !isOfServer(a.error));
  if (!failed?.error) return null;
  return (
    <div className="banner broken" role="status" data-testid="state-outdated">
      <span>
        {t("state.notRefreshed")} <span className="hint">{words(faultOf(failed.error))}</span> <RequestId of={faultOf(failed.error)} />
      </span>
      <button type="button" className="link" onClick={() => failed.refetch()}>
        {t("action.retry")}
      </button>
    </div>
  );
}
