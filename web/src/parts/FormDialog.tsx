// A form over the page: what was typed stays when the write fails; faults stand at their fields; a preview shows what would change.
import { Button } from "antd";
import { type FormEvent, type ReactNode, useId } from "react";
import { ApiError } from "../api/fetch";
import type { FieldFault, Preview } from "../api/types";
import type { Help } from "../i18n/flag-helps";
import { useWords } from "../i18n/locale";
import { shown } from "../format/shown";
import { Icon } from "./Icon";
import { useDialog } from "./useDialog";

interface Props {
  title: string;
  /** On the button that writes. */
  word: string;
  isDestructive?: boolean;
  isReady?: boolean;
  isBusy: boolean;
  error: Error | null;
  preview?: Preview | undefined;
  testId: string;
  onSubmit: () => void;
  onClose: () => void;
  children: ReactNode;
}

export function FormDialog({ title, word, isDestructive = false, isReady = true, isBusy, error, preview, testId, onSubmit, onClose, children }: Props) {
  const { t } = useWords();
  const id = useId();
  const dialog = useDialog(true);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isReady && !isBusy) onSubmit();
  };
  return (
    <dialog className="sheet form-sheet" ref={dialog} onClose={onClose} aria-labelledby={id} data-testid={testId}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" className="tool" onClick={onClose} aria-label={t("action.close")}>
          <Icon name="close" />
        </button>
      </header>
      <form onSubmit={submit} noValidate>
        {children}
        {preview && <Effects preview={preview} />}
        {error && <WriteFault error={error} />}
        <div className="form-acts">
          <Button onClick={onClose}>{t("form.cancel")}</Button>
          <Button htmlType="submit" type="primary" danger={isDestructive} disabled={!isReady} loading={isBusy} data-testid="form-submit">
            {word}
          </Button>
        </div>
      </form>
    </dialog>
  );
}

/** Faults of these fields, and of parts of them. */
export function faultsOf(faults: readonly FieldFault[], ...paths: readonly string[]): readonly FieldFault[] {
  return faults.filter(({ path }) => paths.some((each) => path === each || path.startsWith(`${each}.`) || path.startsWith(`${each}[`)));
}

/** The faults of a refused write, else those of its preview. */
export function allFaults(error: Error | null, preview: Preview | undefined): readonly FieldFault[] {
  return error instanceof ApiError && error.fields.length > 0 ? error.fields : (preview?.fields ?? []);
}

interface FieldProps {
  label: string;
  hint?: string;
  /** Beside the label: a flag as it is spelled. */
  note?: string;
  /** The help of the server's command. */
  help?: Help | undefined;
  faults?: readonly FieldFault[];
  /** `false`: of several controls, each with a label of its own. */
  isOne?: boolean;
  children: ReactNode;
}

export function Field({ label, hint, note, help, faults = [], isOne = true, children }: FieldProps) {
  const inner = (
    <>
      <span className="form-label">
        {label}
        {note && <code>{note}</code>}
      </span>
      {children}
      {hint && <span className="dim form-hint">{hint}</span>}
      {help && (
        <span className="dim form-hint" lang={help.lang}>
          {shown(help.text)}
        </span>
      )}
    </>
  );
  return (
    <div className="form-field" data-faulty={faults.length > 0}>
      {isOne ? (
        <label>{inner}</label>
      ) : (
        <fieldset>
          <legend className="visually-hidden">{label}</legend>
          {inner}
        </fieldset>
      )}
      <Faults of={faults} />
    </div>
  );
}

export function Faults({ of: faults, testId }: { of: readonly FieldFault[]; testId?: string }) {
  if (faults.length === 0) return null;
  return (
    <div className="form-fault" role="alert" data-testid={testId}>
      <ul>
        {faults.map((fault) => (
          <li key={fault.path + fault.rule} lang="en">
            {shown(fault.error)}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The object as it is now, of a write that another client was before. */
export function presentOf<Row>(error: Error | null): Row | null {
  return error instanceof ApiError && error.code === "conflict" ? (error.current as Row | null) : null;
}

/** What another client has made of the object, and a way to write over it. */
export function Conflict({ present, onOverwrite }: { present: string; onOverwrite: () => void }) {
  const { t } = useWords();
  return (
    <p className="form-conflict">
      {t("form.present", { present })}{" "}
      <button type="button" className="link" onClick={onOverwrite}>
        {t("form.overwrite")}
      </button>
    </p>
  );
}

export function WriteFault({ error }: { error: Error }) {
  const { t, code } = useWords();
  const fault = error instanceof ApiError ? error : null;
  const words = fault ? code("error", fault.code, { status: fault.status, error: fault.message }, fault.message) : error.message;
  return (
    <div className="banner broken" role="alert" data-testid="write-fault">
      <span>
        {words} {fault && !words.includes(fault.message) && <span lang="en">{shown(fault.message)}</span>} {fault?.hint && <span className="hint">{fault.hint}</span>}{" "}
        <span className="hint">{t("form.kept")}</span>
      </span>
    </div>
  );
}

const SHOWN_MAX = 20;

function Effects({ preview }: { preview: Preview }) {
  const { t } = useWords();
  const { effects, valid } = preview;
  if (!valid) return null;
  return (
    <section className="form-effects" aria-live="polite" data-testid="form-effects">
      <h3>{t("form.effects")}</h3>
      {effects.length === 0 ? (
        <p className="dim">{t("form.noEffects")}</p>
      ) : (
        <ul>
          {effects.slice(0, SHOWN_MAX).map((each) => (
            <li key={`${each.verb} ${each.kind} ${each.namespace} ${each.name}`} data-verb={each.verb}>
              <span className="effect-verb">{t(each.verb === "create" ? "effect.create" : each.verb === "delete" ? "effect.delete" : "effect.update")}</span> {each.kind}{" "}
              <span className="mono">{shown(each.namespace ? `${each.namespace}/${each.name}` : each.name)}</span>
            </li>
          ))}
          {effects.length > SHOWN_MAX && <li className="dim">{t("form.more", { n: effects.length - SHOWN_MAX })}</li>}
        </ul>
      )}
    </section>
  );
}
