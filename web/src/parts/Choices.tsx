// One of a few: a radio group in one line. One stop for Tab, arrows choose, the ring is seen.
import { useId } from "react";

interface Props<Value extends string> {
  name: string;
  label: string;
  value: Value;
  /** `why` one cannot be chosen, for those that cannot. */
  choices: readonly { readonly value: Value; readonly word: string; readonly why?: string | undefined }[];
  onChoose: (value: Value) => void;
}

export function Choices<Value extends string>({ name, label, value, choices, onChoose }: Props<Value>) {
  const id = useId();
  return (
    <span className="choices" role="radiogroup" aria-label={label} data-testid={`choices-${name}`}>
      {choices.map((choice) => (
        <label key={choice.value} data-chosen={choice.value === value} data-off={Boolean(choice.why)} title={choice.why}>
          <input type="radio" name={`${name}${id}`} checked={choice.value === value} disabled={Boolean(choice.why)} onChange={() => onChoose(choice.value)} />
          {choice.word}
        </label>
      ))}
    </span>
  );
}
