// "3h ago", with the exact time on hover and for machines.
import { useNow } from "../app/clock";
import { exactTime, parseTime, roughDuration, UNKNOWN } from "../format/format";
import { useWords } from "../i18n/locale";

const MINUTE_MS = 30_000;

export function Ago({ at }: { at: string | null }) {
  const { t } = useWords();
  const now = useNow(MINUTE_MS);
  const ms = parseTime(at);
  if (ms === null) return UNKNOWN;
  return (
    <time dateTime={at ?? ""} title={exactTime(ms)}>
      {t("time.ago", { time: roughDuration((now - ms) / 1000) })}
    </time>
  );
}
