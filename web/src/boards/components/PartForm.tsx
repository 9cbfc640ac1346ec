// A part of Fairlead's installation: its checks, and the command that writes it. For the console: which database it keeps its records in.
import { useState } from "react";
import { usePreview, type WriteOrder } from "../../api/queries";
import type { ComponentListRow, ComponentPlanned } from "../../api/types";
import { quoted } from "../../commands/commands";
import { useWords } from "../../i18n/locale";
import { Checks } from "../../parts/Checks";
import { Command } from "../../parts/Copy";
import { FormDialog } from "../../parts/FormDialog";
import type { Do } from "./PlanForm";
import { StoreChoice } from "./StoreChoice";

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
      {row.id === "console" && act === "deploy" && <StoreChoice hint={t("components.storePasswordHint")} onStore={(store) => setSettings(store === null ? null : store === "built-in" ? [] : store.settings)} />}
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
