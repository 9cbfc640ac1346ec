// One of a few: a radio group in one line. One stop for Tab, arrows choose, the ring is seen. One that cannot be chosen can be come to: why stands beside the group, and is read with it.
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
  const whys = [...new Set(choices.flatMap((choice) => choice.why ?? []))];
  const whyId = (why: string) => `${id}why${whys.indexOf(why)}`;
  return (
    <>
      {whys.map((why) => (
        <span key={why} id={whyId(why)} className="choices-why" data-testid={`choices-${name}-why`}>
          {why}
        </span>
      ))}
      <span className="choices" role="radiogroup" aria-label={label} data-testid={`choices-${name}`}>
        {choices.map((choice) => (
          <label key={choice.value} data-chosen={choice.value === value} data-off={Boolean(choice.why)}>
            <input
              type="radio"
              name={`${name}${id}`}
              checked={choice.value === value}
              aria-disabled={Boolean(choice.why)}
              aria-describedby={choice.why && whyId(choice.why)}
              onChange={() => {
                if (!choice.why) onChoose(choice.value);
              }}
            />
            {choice.word}
          </label>
        ))}
      </span>
    </>
  );
}
