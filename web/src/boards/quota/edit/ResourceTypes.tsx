// Which resources the tree counts.
import { type FormEvent, useId, useState } from "react";
import { useWords } from "../../../i18n/locale";
import { DEFAULT_RESOURCES, type Draft } from "./draft";

export function ResourceTypes({ draft, onChange }: { draft: Draft; onChange: (resources: readonly string[]) => void }) {
  const { t } = useWords();
  const [typed, setTyped] = useState("");
  const id = useId();
  const known = [...new Set([...DEFAULT_RESOURCES, ...draft.resources])];
  const add = (event: FormEvent) => {
    event.preventDefault();
    if (typed.trim() && !draft.resources.includes(typed.trim())) onChange([...draft.resources, typed.trim()]);
    setTyped("");
  };
  return (
    <fieldset className="tree-resources" data-testid="tree-resources">
      <legend>{t("tree.resources")}</legend>
      {known.map((resource) => (
        <label key={resource}>
          <input
            type="checkbox"
            checked={draft.resources.includes(resource)}
            onChange={(event) => onChange(event.target.checked ? [...draft.resources, resource] : draft.resources.filter((each) => each !== resource))}
          />{" "}
          {resource}
        </label>
      ))}
      <form onSubmit={add}>
        <label htmlFor={id}>{t("tree.otherResource")}</label> <input id={id} className="bound wide" value={typed} onChange={(event) => setTyped(event.target.value)} spellCheck={false} autoComplete="off" />{" "}
        <button type="submit" className="link">
          {t("tree.add")}
        </button>
      </form>
    </fieldset>
  );
}
