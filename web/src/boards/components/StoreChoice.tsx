// The store of the console: built-in, or an external database that is checked before anything is written.
import { Button } from "antd";
import { useState } from "react";
import { useStoreCheck } from "../../api/queries";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Field, WriteFault } from "../../parts/FormDialog";

/** An external database that has answered; `settings`: the values of the installation that name it. */
export interface Store {
  readonly url: string;
  readonly password: string;
  readonly settings: readonly string[];
}

/** `onStore`: `"built-in"`, a database, or `null` while an external one is not checked. `hint`: what happens to the password. */
export function StoreChoice({ hint, onStore }: { hint: string; onStore: (store: Store | "built-in" | null) => void }) {
  const { t } = useWords();
  const [isExternal, setExternal] = useState(false);
  const [url, setUrl] = useState("");
  const [password, setPassword] = useState("");
  const check = useStoreCheck();
  const choose = (external: boolean) => {
    setExternal(external);
    check.reset();
    onStore(external ? null : "built-in");
  };
  const change = (set: (text: string) => void) => (event: { target: { value: string } }) => {
    set(event.target.value);
    check.reset();
    onStore(null);
  };
  return (
    <>
      <Field label={t("components.store")} isOne={false}>
        <span className="form-row">
          <label>
            <input type="radio" name="store" checked={!isExternal} onChange={() => choose(false)} data-testid="store-built-in" /> {t("components.builtIn")}
          </label>
          <label>
            <input type="radio" name="store" checked={isExternal} onChange={() => choose(true)} data-testid="store-external" /> {t("components.external")}
          </label>
        </span>
      </Field>
      {isExternal && (
        <>
          <Field label={t("components.storeUrl")} hint={t("components.storeUrlHint")}>
            <input type="text" className="mono" value={url} maxLength={500} autoComplete="off" placeholder="postgresql://fairlead@db.example.com:5432/fairlead" onChange={change(setUrl)} data-testid="store-url" />
          </Field>
          <Field label={t("components.storePassword")} hint={hint}>
            <input type="password" value={password} autoComplete="off" onChange={change(setPassword)} data-testid="store-password" />
          </Field>
          <p>
            <Button
              loading={check.isPending}
              disabled={url.trim() === ""}
              data-testid="store-check"
              onClick={() => check.mutate({ url, password }, { onSuccess: ({ ok, settings }) => onStore(ok ? { url: url.trim(), password, settings } : null) })}
            >
              {t("components.check")}
            </Button>
          </p>
          {check.error && <WriteFault error={check.error} />}
          {check.data && (
            <p role="status" lang="en" data-testid="store-answer" data-ok={check.data.ok}>
              <span className="status" data-tone={check.data.ok ? "good" : "bad"}>
                {shown(check.data.sentence)}
              </span>
              {check.data.hint && <span className="dim"> → {shown(check.data.hint)}</span>}
            </p>
          )}
        </>
      )}
    </>
  );
}
