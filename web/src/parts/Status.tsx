// A status is a word and a small shape, never a colour alone.
import { useWords } from "../i18n/locale";
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
  draining: "wait",
  containercreating: "wait",
  podinitializing: "wait",
  terminating: "wait",
  error: "bad",
  crashloopbackoff: "bad",
  imagepullbackoff: "bad",
  errimagepull: "bad",
  oomkilled: "bad",
  evicted: "bad",
  notready: "bad",
  unhealthy: "bad",
  failed: "bad",
  unknown: "unknown",
};

export const toneOf = (status: string): Tone => TONES[status.toLowerCase()] ?? "unknown";

export function Status({ word, suffix }: { word: string; suffix?: string }) {
  const { t } = useWords();
  const key = `status.${word.toLowerCase()}`;
  const text = `${isMessageKey(key) ? t(key) : word}${suffix ?? ""}`;
  return (
    <span className="status" data-tone={toneOf(word)} title={suffix ? text : undefined}>
      {text}
    </span>
  );
}
