// One flag of a command as a field: a text, a text of several lines, or a switch.
import type { FieldFault, JobFlag, JobForm } from "../../api/types";
import { helpIn } from "../../i18n/flag-helps";
import { useWords } from "../../i18n/locale";
import { isMessageKey } from "../../i18n/translate";
import { Faults, Field } from "../../parts/FormDialog";
import type { FlagValue } from "./draft";

interface Props {
  flag: JobFlag;
  form: Pick<JobForm, "type" | "family">;
  value: FlagValue;
  faults: readonly FieldFault[];
  onChange: (value: FlagValue) => void;
}

export function FlagField({ flag, form, value, faults, onChange }: Props) {
  const { t, locale } = useWords();
  // A flag may mean something else elsewhere: `--replicas` of a serving job are no executors.
  const key = [`flag.${form.type}.${flag.name}`, `flag.${form.family}.${flag.name}`, `flag.${flag.name}`].find(isMessageKey);
  const spelled = `--${flag.name}`;
  const label = key ? t(key) : spelled;
  const words = helpIn(locale, flag.help);
  // A help that only repeats the label is left out.
  const help = words.text.toLowerCase() === label.toLowerCase() ? undefined : words;
  const test = `flag-${flag.name}`;
  if (flag.kind === "truth") {
    return (
      <div className="form-field" data-faulty={faults.length > 0}>
        <label className="submit-truth">
          <input type="checkbox" checked={value === true} onChange={(event) => onChange(event.target.checked)} data-testid={test} />
          <span className="form-label">
            {label} {label !== spelled && <code>{spelled}</code>}
          </span>
          {help && (
            <span className="dim form-hint" lang={help.lang}>
              {help.text}
            </span>
          )}
        </label>
        <Faults of={faults} />
      </div>
    );
  }
  const text = String(value);
  return (
    <Field label={label} note={label === spelled ? "" : spelled} help={help} faults={faults}>
      {flag.kind === "many" ? (
        <textarea className="mono" rows={Math.min(6, Math.max(1, text.split("\n").length))} value={text} placeholder={flag.placeholder} spellCheck={false} onChange={(event) => onChange(event.target.value)} data-testid={test} />
      ) : (
        <input type="text" className="mono" value={text} placeholder={flag.placeholder} spellCheck={false} autoComplete="off" onChange={(event) => onChange(event.target.value)} data-testid={test} />
      )}
    </Field>
  );
}
