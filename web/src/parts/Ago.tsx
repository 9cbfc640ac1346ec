// "3h ago", with the exact time on hover and for machines.
import { useNow } from "../app/clock";
import { useAt } from "../past/at";
import { exactTime, parseTime, span, UNKNOWN } from "../format/format";
import { useWords, type Words } from "../i18n/locale";

const MINUTE_MS = 30_000;

/** "3h ago", "3 小时前". */
export function ago(seconds: number, t: Words["t"]): string {
  const { n, unit } = span(seconds);
  return t(`ago.${unit}`, { n });
}

export function Ago({ at }: { at: string | null }) {
  const { t } = useWords();
  const present = useNow(MINUTE_MS);
  // Of the past: as it was read then.
  const now = parseTime(useAt()) ?? present;
  const ms = parseTime(at);
  if (ms === null) return UNKNOWN;
  return (
    <time dateTime={at ?? ""} title={exactTime(ms)}>
      {ago((now - ms) / 1000, t)}
    </time>
  );
}
