// A status is a word and a small shape, never a colour alone.
import { useWords, type Words } from "../i18n/locale";
import { isMessageKey } from "../i18n/translate";

export type Tone = "good" | "bad" | "wait" | "run" | "done" | "unknown";

const TONES: Readonly<Record<string, Tone>> = {
  ready: "good",
  healthy: "good",
  running: "run",
  true: "good",
  pending: "wait",
  queuing: "wait",
  suspended: "wait",
  restarting: "wait",
  succeeded: "done",
  completed: "done",
  finished: "done",
  deleted: "done",
  draining: "wait",
  containercreating: "wait",
  podinitializing: "wait",
  terminating: "wait",
  error: "bad",
  crashloopbackoff: "bad",
  imagepullbackoff: "bad",
  errimagepull: "bad",
  oomkilled: "bad",
  installing: "run",
  upgrading: "run",
  removing: "run",
  degraded: "bad",
  foreign: "unknown",
  notinstalled: "unknown",
  cancelled: "done",
  planned: "wait",
  evicted: "bad",
  notready: "bad",
  unhealthy: "bad",
  failed: "bad",
  unknown: "unknown",
};

export const toneOf = (status: string): Tone => TONES[status.toLowerCase()] ?? "unknown";

export function statusWord(word: string, t: Words["t"]): string {
  const key = `status.${word.toLowerCase()}`;
  return isMessageKey(key) ? t(key) : word;
}

export function Status({ word, suffix }: { word: string; suffix?: string }) {
  const { t } = useWords();
  const text = `${statusWord(word, t)}${suffix ?? ""}`;
  return (
    <span className="status" data-tone={toneOf(word)} title={suffix ? text : undefined}>
      {text}
    </span>
  );
}
