// The badge of a simulated cluster: that it is one, what time it is there, and the door to moving that time.
import { useEffect, useEffectEvent, useId, useRef, useState } from "react";
import { useClockFace, useMe } from "../api/queries";
import { timeOfDay } from "../format/format";
import { useWords } from "../i18n/locale";
import { Icon } from "../parts/Icon";
import { useNow } from "./clock";
import { TimePanel } from "./TimePanel";
import { progressOf } from "./timeorders";

export function TimeBadge() {
  const { t } = useWords();
  const [open, setOpen] = useState(false);
  const id = useId();
  const box = useRef<HTMLSpanElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const me = useMe().data;
  const face = useClockFace().data ?? me?.clock;
  useEffect(() => {
    if (!open) return undefined;
    const onPointer = (event: PointerEvent) => !box.current?.contains(event.target as Node) && setOpen(false);
    addEventListener("pointerdown", onPointer);
    return () => removeEventListener("pointerdown", onPointer);
  }, [open]);
  useEscape(open, () => {
    setOpen(false);
    button.current?.focus();
  });
  if (!face) return null;
  const run = progressOf(face);
  const content = (
    <>
      <b>{t("frame.simulated")}</b>
      {face.isPaused && <Icon name="pause" />}
      <BadgeTime />
      {run !== null && <span className="num">{t("time.runBadge", { percent: Math.floor(run) })}</span>}
      {run === null && face.isPaused && <span>{t("time.paused")}</span>}
      {run === null && !face.isPaused && face.speed !== 1 && <span className="num">×{face.speed}</span>}
    </>
  );
  if (!me?.features.clock) {
    return (
      <span className="badge" data-testid="badge-simulated" title={t("frame.simulatedHint")}>
        {content}
      </span>
    );
  }
  return (
    <span className="time" ref={box}>
      <button type="button" ref={button} className="badge" data-testid="badge-simulated" data-paused={face.isPaused} aria-expanded={open} aria-controls={id} aria-haspopup="dialog" title={`${t("frame.simulatedHint")} (t)`} onClick={() => setOpen(!open)}>
        {content}
      </button>
      {open && <TimePanel id={id} face={face} csrf={me.csrf} />}
    </span>
  );
}

function BadgeTime() {
  return <span className="num">{timeOfDay(useNow(1000))}</span>;
}

/** Esc closes the panel wherever the focus is; caught early, so that it does not also leave a detail page. */
function useEscape(isOn: boolean, onEscape: () => void): void {
  const leave = useEffectEvent(onEscape);
  useEffect(() => {
    if (!isOn) return undefined;
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      event.preventDefault();
      leave();
    };
    addEventListener("keydown", onKey, { capture: true });
    return () => removeEventListener("keydown", onKey, { capture: true });
  }, [isOn]);
}
