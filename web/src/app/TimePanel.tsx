// Moving a simulated cluster's time: stop, step, run ahead, faster and slower. Long runs are asked again, for time never goes back.
import { Button, Input } from "antd";
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { ApiError } from "../api/fetch";
import { useMoveClock } from "../api/queries";
import type { ClockFace, ClockMoved, ClockOrder } from "../api/types";
import { objectCommands } from "../commands/objects";
import { duration, exactTime, parseTime } from "../format/format";
import { useWords, type Words } from "../i18n/locale";
import { Command } from "../parts/Copy";
import { Icon } from "../parts/Icon";
import { Meter } from "../parts/Meter";
import { useClock, useNow } from "./clock";
import { FASTEST, isAskedAgain, parseSpan, parseSpeed, progressOf, SLOWEST, SPANS, SPEEDS, targetOf, untilOrder } from "./timeorders";

export function TimePanel({ id, face, csrf }: { id: string; face: ClockFace; csrf: string }) {
  const { t } = useWords();
  const clock = useClock();
  const move = useMoveClock(csrf);
  const [asked, setAsked] = useState<ClockOrder | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const first = useRef<HTMLDivElement>(null);
  /** Where the order was given that is asked again. */
  const asker = useRef<HTMLElement | null>(null);
  useEffect(() => first.current?.querySelector("button")?.focus(), []);
  const send = (order: ClockOrder) => {
    setAsked(null);
    setFault(null);
    move.mutate(order);
  };
  const order = (wanted: ClockOrder | null, elseSay: string) => {
    move.reset();
    setFault(wanted ? null : elseSay);
    if (wanted && isAskedAgain(wanted, clock.now())) {
      asker.current = document.activeElement instanceof HTMLElement ? document.activeElement : null;
      setAsked(wanted);
    } else if (wanted) send(wanted);
  };
  const answer = (obey: () => void) => {
    asker.current?.focus();
    obey();
  };
  return (
    <div className="time-panel" id={id} role="dialog" aria-label={t("time.title")} data-testid="time-panel">
      <TimeLine face={face} />
      <div className="time-row" ref={first}>
        {face.isPaused ? (
          <Button onClick={() => send({ action: "resume" })} icon={<Icon name="play" />} data-testid="time-resume">
            {t("time.resume")}
          </Button>
        ) : (
          <Button onClick={() => send({ action: "pause" })} icon={<Icon name="pause" />} data-testid="time-pause">
            {t("time.pause")}
          </Button>
        )}
        <Button onClick={() => send({ action: "step" })} icon={<Icon name="step" />} title={t("time.stepHint")} data-testid="time-step">
          {t("time.step")}
        </Button>
      </div>
      <OwnField label={t("time.speed")} word={t("time.set")} hint="×120" testId="time-speed" onSet={(text) => order(speedOrder(text), t("time.badSpeed", { low: SLOWEST, high: FASTEST }))}>
        {SPEEDS.map((speed) => (
          <Button key={speed} aria-pressed={face.speed === speed} type={face.speed === speed ? "primary" : "default"} onClick={() => send({ action: "speed", speed })}>
            ×{speed}
          </Button>
        ))}
      </OwnField>
      <OwnField label={t("time.advance")} word={t("time.go")} hint="2h30m" testId="time-advance" onSet={(text) => order(spanOrder(text), t("time.badSpan"))}>
        {SPANS.map((seconds) => (
          <Button key={seconds} onClick={() => order({ action: "advance", seconds }, "")}>
            +{duration(seconds)}
          </Button>
        ))}
      </OwnField>
      <OwnField label={t("time.until")} word={t("time.go")} type="datetime-local" testId="time-until" onSet={(text) => order(untilOrder(text, clock.now()), t("time.badUntil"))} />
      {asked && <AskAgain order={asked} now={clock.now()} onYes={() => answer(() => send(asked))} onNo={() => answer(() => setAsked(null))} />}
      {(fault || move.error) && (
        <p className="time-fault" role="alert" data-testid="time-fault">
          {fault ?? errorText(move.error, t)}
        </p>
      )}
      {objectCommands({ kind: "clock", isPaused: face.isPaused }).map((text) => (
        <Command key={text} text={text} />
      ))}
      {move.data && move.variables?.action === "step" && !fault && <StepWrites moved={move.data} />}
    </div>
  );
}

const spanOrder = (text: string): ClockOrder | null => withValue(parseSpan(text), (seconds) => ({ action: "advance", seconds }));
const speedOrder = (text: string): ClockOrder | null => withValue(parseSpeed(text), (speed) => ({ action: "speed", speed }));

function withValue(value: number | null, order: (value: number) => ClockOrder): ClockOrder | null {
  return value === null ? null : order(value);
}

function errorText(error: Error | null, t: Words["t"]): string {
  if (!(error instanceof ApiError)) return String(error?.message ?? "");
  if (error.code === "unreachable") return t("error.unreachable");
  return error.hint ? `${error.message} (${error.hint})` : error.message;
}

function TimeLine({ face }: { face: ClockFace }) {
  const { t } = useWords();
  const now = useNow(1000);
  const run = progressOf(face);
  const state = face.isPaused ? t("time.paused") : t("time.running", { speed: face.speed });
  return (
    <div>
      <div className="time-now">
        <b className="num">{exactTime(now)}</b> <span className="dim">{run === null ? state : t("time.runs", { percent: Math.floor(run), until: exactTime(parseTime(face.until)) })}</span>
      </div>
      {run !== null && <Meter total={100} used={run} label={t("time.runBadge", { percent: Math.floor(run) })} />}
    </div>
  );
}

interface FieldProps {
  label: string;
  /** On the button behind the field. */
  word: string;
  hint?: string;
  type?: string;
  testId: string;
  onSet: (text: string) => void;
  children?: ReactNode;
}

/** Buttons for what is often wanted, and a field for anything else. The field keeps what was typed when it is refused. */
function OwnField({ label, word, hint, type = "text", testId, onSet, children }: FieldProps) {
  const [text, setText] = useState("");
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    onSet(text);
  };
  return (
    <form className="time-row" onSubmit={onSubmit} aria-label={label} noValidate>
      <span className="time-label">{label}</span>
      {children}
      <Input className="time-own" value={text} type={type} step={1} placeholder={hint} aria-label={label} onChange={(event) => setText(event.target.value)} data-testid={`${testId}-own`} />
      <Button htmlType="submit" data-testid={`${testId}-set`}>
        {word}
      </Button>
    </form>
  );
}

function AskAgain({ order, now, onYes, onNo }: { order: ClockOrder; now: number; onYes: () => void; onNo: () => void }) {
  const { t } = useWords();
  const yes = useRef<HTMLButtonElement>(null);
  useEffect(() => yes.current?.focus(), []);
  const target = targetOf(order, now);
  return (
    <div className="time-ask" role="alertdialog" aria-label={t("time.ask")} data-testid="time-ask">
      <p>{t("time.askWhy", { span: duration(((target ?? now) - now) / 1000), until: exactTime(target) })}</p>
      <div className="time-row">
        <Button ref={yes} type="primary" onClick={onYes} data-testid="time-ask-yes">
          {t("time.askYes")}
        </Button>
        <Button onClick={onNo}>{t("time.askNo")}</Button>
      </div>
    </div>
  );
}

const SHOWN = 12;

function StepWrites({ moved }: { moved: ClockMoved }) {
  const { t } = useWords();
  const hidden = moved.happenedCount - Math.min(SHOWN, moved.happened.length);
  return (
    <div aria-live="polite" data-testid="time-happened">
      <p className="dim">{moved.happenedCount ? t("time.happened", { n: moved.happenedCount }) : t("time.nothingHappened")}</p>
      <ul className="time-happened">
        {moved.happened.slice(0, SHOWN).map((each, index) => (
          // oxlint-disable-next-line no-array-index-key -- one object may be written twice in an instant; the list is never reordered
          <li key={index} className="clip">
            {t(each.verb === "added" ? "time.added" : each.verb === "deleted" ? "time.deleted" : "time.modified")} <b>{each.kind}</b> <span className="mono">{each.namespace ? `${each.namespace}/${each.name}` : each.name}</span>
          </li>
        ))}
      </ul>
      {hidden > 0 && <p className="dim">{t("time.more", { n: hidden })}</p>}
    </div>
  );
}
