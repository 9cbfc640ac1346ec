// The time range of all charts of a page: windows that end now; a dragged range shows its ends and how to leave it.
import { Segmented } from "antd";
import { useMe } from "../api/queries";
import { exactTime } from "../format/format";
import { useWords } from "../i18n/locale";
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
          {exactTime(range.from)} – {exactTime(range.to).slice(11)}{" "}
          <button type="button" className="link" onClick={reset}>
            {t("chart.reset")}
          </button>
        </span>
      )}
      <Segmented
        aria-label={t("chart.window")}
        value={range.window ?? ""}
        options={WINDOWS.map((w) => ({ value: w as string, label: w, ...(isKept(w, kept) ? {} : { disabled: true, title: t("chart.windowTooLong", { minutes: Math.floor((kept ?? 0) / 60) }) }) }))}
        onChange={(window) => set({ window, from: null, to: null })}
      />
    </div>
  );
}
