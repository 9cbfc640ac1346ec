// Logs of a job: which container, followed or not, what is searched. A container that has not begun is waited for.
import { useMemo, useState } from "react";
import { apiAddress } from "../../../api/fetch";
import { useJobInstances } from "../../../api/queries";
import type { InstanceLog } from "../../../api/types";
import { useWords } from "../../../i18n/locale";
import { sentenceWords } from "../../../i18n/sentences";
import { Icon } from "../../../parts/Icon";
import { Answered, Bones, Empty, useFaultWords } from "../../../parts/States";
import { useQueryState } from "../../../router/usequery";
import type { JobId } from "../JobsBoard";
import { matches } from "./lines";
import { LogView } from "./LogView";
import { type ReadLog, useLog } from "./useLog";

const TAILS = [500, 2000, 10_000] as const;

export function LogPanel({ id }: { id: JobId }) {
  const { t } = useWords();
  const asked = useJobInstances(id);
  return (
    <Answered asked={asked} bones={<Bones lines={12} />}>
      {(answer) => (answer.logs.length > 0 ? <Logs id={id} logs={answer.logs} /> : <Empty why={t("logs.noInstance")} />)}
    </Answered>
  );
}

function Logs({ id, logs }: { id: JobId; logs: readonly InstanceLog[] }) {
  const { t } = useWords();
  const [params, set] = useQueryState();
  const [follows, setFollows] = useState(true);
  const [wraps, setWraps] = useState(false);
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const pods = [...new Set(logs.map((l) => l.pod))];
  const wanted = params.get("instance");
  const pod = wanted ?? (pods[0] as string);
  const own = logs.filter((l) => l.pod === pod);
  const chosen = own.find((l) => l.container === params.get("container")) ?? own[0];
  const previous = params.get("previous") === "true";
  const tail = TAILS.find((n) => String(n) === params.get("tail")) ?? TAILS[0];
  const path = `/jobs/${id.map(encodeURIComponent).join("/")}/logs`;
  const query = (more: Record<string, string>) => new URLSearchParams({ pod, ...(chosen ? { container: chosen.container } : {}), ...(previous ? { previous: "true" } : {}), ...more });
  const isFollowed = follows && !previous && Boolean(chosen?.running);
  const ready = chosen !== undefined && (previous || chosen.begun);
  const address = ready ? apiAddress(path, query({ tail: String(tail), ...(isFollowed ? { follow: "true" } : {}) })) : null;
  const read = useLog(address, chosen?.restarts ?? 0);
  const found = useMemo(() => matches(read.shown.lines, words), [read.shown, words]);
  const here = found.length > 0 ? ((at % found.length) + found.length) % found.length : 0;
  return (
    <>
      <div className="log-tools">
        <label>
          {t("job.instance")}
          <select value={pod} onChange={(e) => set({ instance: e.target.value, container: null })} data-testid="log-instance">
            {[...new Set([...pods, pod])].map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        {own.length > 1 && (
          <label>
            {t("logs.container")}
            <select value={chosen?.container} onChange={(e) => set({ container: e.target.value })} data-testid="log-container">
              {own.map((l) => (
                <option key={l.container}>{l.container}</option>
              ))}
            </select>
          </label>
        )}
        <label>
          {t("logs.tail")}
          <select value={tail} onChange={(e) => set({ tail: e.target.value })}>
            {TAILS.map((n) => (
              <option key={n}>{n}</option>
            ))}
          </select>
        </label>
        <Check word={t("logs.follow")} on={follows && !previous} off={previous} onChange={setFollows} />
        <Check word={t("logs.previous")} on={previous} off={!previous && (chosen?.restarts ?? 0) === 0} onChange={(on) => set({ previous: on ? "true" : null })} />
        <Check word={t("logs.wrap")} on={wraps} onChange={setWraps} />
        <span className="end">
          <input
            type="search"
            value={words}
            placeholder={t("logs.search")}
            aria-label={t("logs.search")}
            onChange={(e) => {
              setWords(e.target.value);
              setAt(0);
            }}
            onKeyDown={(e) => {
              if (e.key === "Enter") setAt(here + (e.shiftKey ? -1 : 1));
            }}
          />
          <span className="num dim" role="status" data-testid="log-found">
            {words ? t("logs.found", { at: found.length > 0 ? here + 1 : 0, count: found.length }) : ""}
          </span>
          <a className="tool" href={apiAddress(path, query({ tail: "10000" }))} download={`${pod}.log`} aria-label={t("logs.download")} title={t("logs.download")}>
            <Icon name="download" />
          </a>
        </span>
      </div>
      <Fate read={read} chosen={chosen} pod={pod} ready={ready} bounded={!isFollowed} />
      <LogView log={read.shown} wraps={wraps} found={found} here={words ? found[here] : undefined} label={t("logs.of", { pod })} />
    </>
  );
}

function Check({ word, on, off, onChange }: { word: string; on: boolean; off?: boolean; onChange: (on: boolean) => void }) {
  return (
    <label>
      <input type="checkbox" checked={on} disabled={off} onChange={(e) => onChange(e.target.checked)} />
      {word}
    </label>
  );
}

const BYTES_MAX = 2 * 1024 * 1024;

function Fate({ read, chosen, pod, ready, bounded }: { read: ReadLog; chosen: InstanceLog | undefined; pod: string; ready: boolean; bounded: boolean }) {
  const words = useWords();
  const { t, code } = words;
  const faultWords = useFaultWords();
  const { shown: log, state } = read;
  if (state.is === "failed")
    return (
      <p className="log-state bad" role="alert" data-testid="log-failed">
        {log.bytes > 0 ? t("logs.broke", { why: faultWords(state.error) }) : faultWords(state.error)} {state.error.hint && code("hint", state.error.code, { hint: state.error.hint }, state.error.hint)}{" "}
        <button type="button" className="link" onClick={read.again}>
          {t("action.retry")}
        </button>
      </p>
    );
  const dropped = log.dropped > 0 ? ` ${t("logs.dropped", { count: log.dropped })}` : "";
  const cut = bounded && log.bytes >= BYTES_MAX ? ` ${t("logs.cut")}` : "";
  return (
    <p className="log-state" role="status" data-testid="log-state">
      {sentence()}
      {dropped}
      {cut}
    </p>
  );

  function sentence(): string {
    if (chosen === undefined) return t("logs.gone", { pod });
    if (!ready) return t("logs.notBegun", { container: chosen.container, why: chosen.sentence ? sentenceWords(chosen.sentence, words) : chosen.why });
    if (state.is === "opening") return t("logs.opening");
    if (state.is === "open") return log.bytes > 0 ? t("logs.follows") : t("logs.silent");
    if (log.bytes === 0) return t("logs.nothing");
    return chosen.running ? t("logs.soFar") : t("logs.ended");
  }
}
