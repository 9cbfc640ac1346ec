// One-click acceleration of a claim. The server's preview fills the form in, makes all checks, and names the equal command; nothing is written before the button.
import { useState } from "react";
import { usePreview, type WriteOrder } from "../../api/queries";
import type { AccelerationPreview } from "../../api/types";
import { useWords } from "../../i18n/locale";
import { allFaults, faultsOf, Field, FormDialog } from "../../parts/FormDialog";
import { useLate } from "../../parts/useLate";
import { useBegin } from "../operations/useBegin";
import { type CacheDraft, CacheFields, cacheOrder, CHECK_AGAIN_MS, EMPTY_CACHE, Found } from "./CacheParts";

const segment = encodeURIComponent;

interface Draft extends CacheDraft {
  readonly name: string;
  readonly folder: string;
}

const EMPTY: Draft = { ...EMPTY_CACHE, name: "", folder: "" };

export function AccelerateForm({ namespace, claim, onClose }: { namespace: string; claim: string; onClose: () => void }) {
  const { t } = useWords();
  const [draft, setDraft] = useState(EMPTY);
  const { write, begin } = useBegin();
  const body = { name: draft.name.trim(), folder: draft.folder, ...cacheOrder(draft) };
  const order: WriteOrder = { method: "POST", path: `/volumes/${segment(namespace)}/${segment(claim)}/acceleration`, body };
  const asked = JSON.stringify(body);
  const isStill = useLate(asked) === asked;
  const preview = usePreview<AccelerationPreview>(isStill ? order : null, CHECK_AGAIN_MS);
  const found = preview.data;
  const faults = allFaults(write.error, found);
  const set = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  // Checks show their own faults, with their fix; only fields that cannot be read have one of their own.
  const unread = (found?.checks ?? []).length === 0 ? faults : [];
  return (
    <FormDialog
      title={t("datasets.accelerateTitle", { claim: `${namespace}/${claim}` })}
      word={t("datasets.accelerate")}
      isReady={found?.valid === true && isStill}
      isBusy={write.isPending}
      error={write.error ?? preview.error}
      preview={found}
      testId="accelerate-form"
      onSubmit={() => begin(order)}
      onClose={onClose}
    >
      <p className="dim">{t("datasets.accelerateWhy")}</p>
      <Field label={t("datasets.newName")} faults={faultsOf(unread, "name")}>
        <input type="text" className="mono" value={draft.name} maxLength={253} placeholder={found?.chosen?.name ?? ""} onChange={(event) => set({ name: event.target.value })} data-testid="accelerate-name" />
      </Field>
      <Field label={t("datasets.folder")} hint={t("datasets.folderHint")} faults={faultsOf(unread, "folder")}>
        <input type="text" className="mono" value={draft.folder} maxLength={253} onChange={(event) => set({ folder: event.target.value })} data-testid="accelerate-folder" />
      </Field>
      <CacheFields slug="accelerate" draft={draft} chosen={found?.chosen} faults={unread} set={set} />
      <Found slug="accelerate" preview={found} faults={unread} fields={["name", "folder"]} isBusy={preview.isFetching} onAgain={() => void preview.refetch()} />
    </FormDialog>
  );
}
