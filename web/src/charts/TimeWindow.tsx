// The time range of all charts of a page: windows that end now; a dragged range shows its ends and how to leave it.
import { useMe } from "../api/queries";
import { exactRange } from "../format/format";
import { useWords } from "../i18n/locale";
import { Choices } from "../parts/Choices";
import { useQueryState } from "../router/usequery";
import { useChartPage } from "./page";
import { isKept, WINDOWS } from "./range";

export function TimeWindow() {
  const { t } = useWords();
  const { range, reset } = useChartPage();
  const [, set] = useQueryState();
  const kept = useMe().data?.features.historySeconds ?? null;
  return (
    <div className="time-window">
      {range.window === null && (
        <span className="num dim">
          {exactRange(range.from, range.to)}{" "}
          <button type="button" className="link" onClick={reset}>
            {t("chart.reset")}
          </button>
        </span>
      )}
      <Choices
        name="window"
        label={t("chart.window")}
        value={range.window ?? ""}
        choices={WINDOWS.map((w) => ({ value: w as string, word: w, why: isKept(w, kept) ? undefined : t("chart.windowTooLong", { minutes: Math.floor((kept ?? 0) / 60) }) }))}
        onChoose={(window) => set({ window, from: null, to: null })}
      />
    </div>
  );
}
