// The time slider: the cluster at any moment that the usage ledger covers. Without a ledger there is none.
import { useIsFetching } from "@tanstack/react-query";
import { Button } from "antd";
import { useEffect, useState } from "react";
import { usePast } from "../api/queries";
import { exactTime, parseTime } from "../format/format";
import { useWords } from "../i18n/locale";
import { Choices } from "../parts/Choices";
import { Icon } from "../parts/Icon";
import { useQueryState } from "../router/usequery";
import { useAt } from "./at";
import { addressOf, fieldOf, gapAt, gapMarks, isStep, type Step, STEPS, stepped, type Times, timesOf, within } from "./moments";
import "./past.css";

const HOUR = 3_600_000;
/** How long the slider rests before the moment under it is read. */
const REST_MS = 200;
/** How long each moment of play is shown, after it was read. */
const SHOWN_MS = 900;

export function PastBar() {
  const { t } = useWords();
  const at = useAt();
  const times = timesOf(usePast().data);
  const [, set] = useQueryState();
  if (times === null) return at === null ? null : <Banner at={parseTime(at)} times={null} onNow={() => set({ at: null })} />;
  if (at === null) {
    return (
      <div className="past-closed">
        <button type="button" className="link" onClick={() => set({ at: addressOf(within(times, times.last - HOUR)) })} data-testid="action-past">
          {t("past.open")}
        </button>
      </div>
    );
  }
  return <Slider at={parseTime(at)} times={times} />;
}

function Banner({ at, times, onNow }: { at: number | null; times: Times | null; onNow: () => void }) {
  const { t } = useWords();
  const gap = times && at !== null ? gapAt(times, at) : null;
  return (
    <div className="past-words">
      <strong data-testid="past-banner" role="status">
        {t("past.shown", { at: exactTime(at) })}
      </strong>
      {gap && <span data-testid="past-gap">{t("past.inGap", { start: exactTime(gap.start), end: exactTime(gap.end) })}</span>}
      <Button className="now" onClick={onNow} data-testid="action-now">
        {t("past.now")}
      </Button>
    </div>
  );
}

function Slider({ at, times }: { at: number | null; times: Times }) {
  const { t } = useWords();
  const [params, set] = useQueryState();
  const asked = params.get("step");
  const step: Step = isStep(asked) ? asked : "1h";
  const playing = params.get("play") === "on";
  const shown = at ?? times.last;
  const [drawn, setDrawn] = useState(shown);
  const [of, setOf] = useState(shown);
  if (of !== shown) {
    setOf(shown);
    setDrawn(shown);
  }
  const go = (to: number, how: "push" | "replace" = "replace") => set({ at: addressOf(within(times, to)) }, how);
  useRested(drawn, shown, go);
  usePlay(playing, stepped(times, shown, STEPS[step]), go, () => set({ play: null }, "replace"));
  const move = (by: 1 | -1) => {
    const to = stepped(times, shown, by * STEPS[step]);
    if (to !== null) go(to);
  };
  return (
    <section className="past" aria-label={t("past.title")} data-testid="past">
      <Banner at={at} times={times} onNow={() => set({ at: null, play: null, step: null })} />
      <div className="past-track">
        <span className="past-gaps" aria-hidden="true">
          {gapMarks(times).map((mark) => (
            <i key={mark.left} data-testid="past-gap-mark" style={{ left: `${mark.left}%`, width: `${mark.width}%` }} />
          ))}
        </span>
        <input
          type="range"
          min={times.first}
          max={times.last}
          step={STEPS[step]}
          value={drawn}
          aria-label={t("past.slider")}
          aria-valuetext={exactTime(drawn)}
          onChange={(event) => setDrawn(Number(event.target.value))}
          data-testid="past-slider"
        />
        <span className="past-ends num dim">
          <span>{exactTime(times.first)}</span>
          <span>{exactTime(drawn)}</span>
          <span>{exactTime(times.last)}</span>
        </span>
      </div>
      <div className="past-tools">
        <button type="button" className="tool" onClick={() => move(-1)} disabled={shown <= times.first} aria-label={t("past.back")} title={t("past.back")} data-testid="action-past-back">
          <Icon name="fold" />
        </button>
        <button type="button" className="tool" aria-pressed={playing} onClick={() => set({ play: playing ? null : "on" }, "replace")} aria-label={t(playing ? "past.pause" : "past.play")} title={t(playing ? "past.pause" : "past.play")} data-testid="action-past-play">
          <Icon name={playing ? "pause" : "play"} />
        </button>
        <button type="button" className="tool" onClick={() => move(1)} disabled={stepped(times, shown, STEPS[step]) === null} aria-label={t("past.forward")} title={t("past.forward")} data-testid="action-past-forward">
          <Icon name="unfold" />
        </button>
        <Choices name="past-step" label={t("past.step")} value={step} choices={(Object.keys(STEPS) as Step[]).map((value) => ({ value, word: t(`past.step.${value}`) }))} onChoose={(value) => set({ step: value === "1h" ? null : value }, "replace")} />
        <label className="past-field">
          {t("past.moment")}
          <input
            key={shown}
            type="datetime-local"
            step={1}
            defaultValue={fieldOf(shown)}
            min={fieldOf(times.first)}
            max={fieldOf(times.last)}
            onBlur={(event) => {
              const to = Date.parse(event.target.value);
              if (!Number.isNaN(to) && Math.abs(to - shown) >= 1000) go(to, "push");
            }}
            data-testid="past-moment"
          />
        </label>
      </div>
    </section>
  );
}

/** Goes to where the slider was dragged once it rests. */
function useRested(drawn: number, shown: number, go: (to: number) => void): void {
  useEffect(() => {
    if (drawn === shown) return undefined;
    const timer = setTimeout(() => go(drawn), REST_MS);
    return () => clearTimeout(timer);
  });
}

/** The next moment after this one was read and shown for a while; `null` ends it. */
function usePlay(playing: boolean, next: number | null, go: (to: number) => void, stop: () => void): void {
  const reading = useIsFetching() > 0;
  useEffect(() => {
    if (!playing || reading) return undefined;
    const timer = setTimeout(() => (next === null ? stop() : go(next)), SHOWN_MS);
    return () => clearTimeout(timer);
  });
}
