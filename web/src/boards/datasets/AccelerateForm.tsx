// One-click acceleration of a claim. The server's preview fills the form in, makes all checks, and names the equal command; nothing is written before the button.
import { useState } from "react";
import { usePreview, useWrite, type WriteOrder } from "../../api/queries";
import type { AccelerationPreview, Begun } from "../../api/types";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Checks } from "../../parts/Checks";
import { Command } from "../../parts/Copy";
import { allFaults, Faults, faultsOf, Field, FormDialog } from "../../parts/FormDialog";
import { useLate } from "../../parts/useLate";
import { navigate } from "../../router/router";

/** The cluster changes while the dialog is open: what mends a check is seen without a click, too. */
const CHECK_AGAIN_MS = 15_000;
const segment = encodeURIComponent;

interface Draft {
  readonly name: string;
  readonly folder: string;
  readonly workers: string;
  readonly medium: string;
  readonly quota: string;
}

const EMPTY: Draft = { name: "", folder: "", workers: "", medium: "MEM", quota: "" };
const FIELDS = ["name", "folder", "workers", "medium", "quota"] as const;

export function AccelerateForm({ namespace, claim, onClose }: { namespace: string; claim: string; onClose: () => void }) {
  const { t } = useWords();
  const [draft, setDraft] = useState(EMPTY);
  const write = useWrite<Begun>();
  const workers = Number(draft.workers || "0");
  const body = { ...draft, name: draft.name.trim(), quota: draft.quota.trim(), workers: Number.isInteger(workers) ? workers : -1 };
  const order: WriteOrder = { method: "POST", path: `/volumes/${segment(namespace)}/${segment(claim)}/acceleration`, body };
  const asked = JSON.stringify(body);
  const isStill = useLate(asked) === asked;
  const preview = usePreview<AccelerationPreview>(isStill ? order : null, CHECK_AGAIN_MS);
  const found = preview.data;
  const faults = allFaults(write.error, found);
  const chosen = found?.chosen;
  const set = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const text = (key: "name" | "folder" | "workers" | "quota", placeholder: string) => (
    <input type="text" className="mono" value={draft[key]} maxLength={253} placeholder={placeholder} onChange={(event) => set({ [key]: event.target.value })} data-testid={`accelerate-${key}`} />
  );
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
      onSubmit={() => write.mutate(order, { onSuccess: ({ operation }) => navigate(`/operations/${segment(operation)}`) })}
      onClose={onClose}
    >
      <p className="dim">{t("datasets.accelerateWhy")}</p>
      <Field label={t("datasets.newName")} faults={faultsOf(unread, "name")}>
        {text("name", chosen?.name ?? "")}
      </Field>
      <Field label={t("datasets.folder")} hint={t("datasets.folderHint")} faults={faultsOf(unread, "folder")}>
        {text("folder", "")}
      </Field>
      <Field label={t("datasets.workerCount")} hint={t("datasets.workerHint")} faults={faultsOf(unread, "workers")}>
        {text("workers", chosen ? String(chosen.workers) : "")}
      </Field>
      <Field label={t("datasets.medium")} faults={faultsOf(unread, "medium")}>
        <select value={draft.medium} onChange={(event) => set({ medium: event.target.value })} data-testid="accelerate-medium">
          <option value="MEM">{t("datasets.mem")}</option>
          <option value="SSD">{t("datasets.ssd")}</option>
        </select>
      </Field>
      <Field label={t("datasets.quota")} hint={t("datasets.quotaHint")} faults={faultsOf(unread, "quota")}>
        {text("quota", chosen?.quota ?? "")}
      </Field>
      {found && found.checks.length > 0 && <Checks testId="accelerate-checks" of={found.checks} isBusy={preview.isFetching} onAgain={() => void preview.refetch()} />}
      <Faults of={unread.filter(({ path }) => !FIELDS.some((each) => path === each))} />
      {found?.line && (
        <div className="form-field" data-testid="accelerate-line">
          <span className="form-label">{t("command.equal")}</span>
          <Command text={found.line} />
        </div>
      )}
      {found?.manifests && (
        <details>
          <summary>YAML</summary>
          <pre className="secret mono">{shown(found.manifests)}</pre>
        </details>
      )}
    </FormDialog>
  );
}
