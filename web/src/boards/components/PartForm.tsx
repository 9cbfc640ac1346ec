// A part of Fairlead's installation: its checks, and the command that writes it. For the console: which database it keeps its records in.
import { Button } from "antd";
import { useState } from "react";
import { useStoreCheck, usePreview, type WriteOrder } from "../../api/queries";
import type { ComponentListRow, ComponentPlanned } from "../../api/types";
import { quoted } from "../../commands/commands";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Checks } from "../../parts/Checks";
import { Command } from "../../parts/Copy";
import { Field, FormDialog, WriteFault } from "../../parts/FormDialog";
import type { Do } from "./PlanForm";

const CHECK_AGAIN_MS = 15_000;

export function PartForm({ row, act, onClose }: { row: ComponentListRow; act: Do; onClose: () => void }) {
  const { t } = useWords();
  const [settings, setSettings] = useState<readonly string[] | null>([]);
  const order: WriteOrder = { method: "POST", path: "/plans", body: { component: row.id, do: act } };
  const preview = usePreview<ComponentPlanned>(order, CHECK_AGAIN_MS);
  const found = preview.data;
  const flags = (settings ?? []).map((each) => ` --set ${quoted(each)}`).join("");
  return (
    <FormDialog title={t(`components.${act}Title`, { id: row.id })} word={t("action.close")} isBusy={false} error={preview.error} testId="part-form" onSubmit={onClose} onClose={onClose}>
      <p>{t("components.partWhy")}</p>
      {row.id === "console" && act === "deploy" && <StoreChoice onSettings={setSettings} />}
      {found && found.checks.length > 0 && <Checks testId="plan-checks" of={found.checks} isBusy={preview.isFetching} onAgain={() => void preview.refetch()} />}
      {found?.line && settings && (
        <div className="form-field" data-testid="plan-line">
          <span className="form-label">{t("components.run")}</span>
          {settings.length > 0 && <Command text="kubectl -n fairlead-system create secret generic fairlead-console --from-file=store-password=FILE" />}
          <Command text={found.line + flags} />
        </div>
      )}
    </FormDialog>
  );
}

/** `onSettings`: values of the installation; `null` while an external database is not checked. */
function StoreChoice({ onSettings }: { onSettings: (settings: readonly string[] | null) => void }) {
  const { t } = useWords();
  const [isExternal, setExternal] = useState(false);
  const [url, setUrl] = useState("");
  const [password, setPassword] = useState("");
  const check = useStoreCheck();
  const choose = (external: boolean) => {
    setExternal(external);
    check.reset();
    onSettings(external ? null : []);
  };
  const change = (set: (text: string) => void) => (event: { target: { value: string } }) => {
    set(event.target.value);
    check.reset();
    onSettings(null);
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
          <Field label={t("components.storePassword")} hint={t("components.storePasswordHint")}>
            <input type="password" value={password} autoComplete="off" onChange={change(setPassword)} data-testid="store-password" />
          </Field>
          <p>
            <Button
              loading={check.isPending}
              disabled={url.trim() === ""}
              data-testid="store-check"
              onClick={() => check.mutate({ url, password }, { onSuccess: ({ ok, settings }) => onSettings(ok ? settings : null) })}
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
