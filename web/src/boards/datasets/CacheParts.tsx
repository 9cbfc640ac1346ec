// What the forms that make a data set share: the fields of its cache, and what the server's preview found.
import type { AccelerationPreview, FieldFault } from "../../api/types";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Command } from "../../parts/Copy";
import { Faults, faultsOf, Field } from "../../parts/FormDialog";
import { Checks } from "../../parts/Checks";

/** The cluster changes while the dialog is open: what mends a check is seen without a click, too. */
export const CHECK_AGAIN_MS = 15_000;

export interface CacheDraft {
  readonly workers: string;
  readonly medium: string;
  readonly quota: string;
}

export const EMPTY_CACHE: CacheDraft = { workers: "", medium: "MEM", quota: "" };
const CACHE_FIELDS = ["workers", "medium", "quota"] as const;

/** What is no whole number is sent as one that the server refuses. */
export const wholeNumber = (text: string): number => {
  const value = Number(text.trim() || "0");
  return Number.isSafeInteger(value) ? value : -1;
};

export const cacheOrder = ({ workers, medium, quota }: CacheDraft) => ({ workers: wholeNumber(workers), medium, quota: quota.trim() });

interface FieldsProps {
  slug: string;
  draft: CacheDraft;
  /** The defaults that apply. */
  chosen: AccelerationPreview["chosen"] | undefined;
  faults: readonly FieldFault[];
  set: (part: Partial<CacheDraft>) => void;
}

export function CacheFields({ slug, draft, chosen, faults, set }: FieldsProps) {
  const { t } = useWords();
  return (
    <>
      <Field label={t("datasets.workerCount")} hint={t("datasets.workerHint")} faults={faultsOf(faults, "workers")}>
        <input type="text" className="mono" value={draft.workers} maxLength={4} placeholder={chosen ? String(chosen.workers) : ""} onChange={(event) => set({ workers: event.target.value })} data-testid={`${slug}-workers`} />
      </Field>
      <Field label={t("datasets.medium")} faults={faultsOf(faults, "medium")}>
        <select value={draft.medium} onChange={(event) => set({ medium: event.target.value })} data-testid={`${slug}-medium`}>
          <option value="MEM">{t("datasets.mem")}</option>
          <option value="SSD">{t("datasets.ssd")}</option>
        </select>
      </Field>
      <Field label={t("datasets.quota")} hint={t("datasets.quotaHint")} faults={faultsOf(faults, "quota")}>
        <input type="text" className="mono" value={draft.quota} maxLength={60} placeholder={chosen?.quota ?? ""} onChange={(event) => set({ quota: event.target.value })} data-testid={`${slug}-quota`} />
      </Field>
    </>
  );
}

interface FoundProps {
  slug: string;
  preview: AccelerationPreview | undefined;
  faults: readonly FieldFault[];
  /** The form's own fields, which show their faults themselves. */
  fields: readonly string[];
  isBusy: boolean;
  onAgain: () => void;
}

export function Found({ slug, preview, faults, fields, isBusy, onAgain }: FoundProps) {
  const own: readonly string[] = [...CACHE_FIELDS, ...fields];
  return (
    <>
      {preview && preview.checks?.length > 0 && <Checks of={preview.checks} isBusy={isBusy} testId={`${slug}-checks`} onAgain={onAgain} />}
      <Faults of={faults.filter(({ path }) => !own.includes(path))} />
      {preview?.line && <EqualLine text={preview.line} slug={slug} />}
      {preview?.manifests && (
        <details>
          <summary>YAML</summary>
          <pre className="secret mono">{shown(preview.manifests)}</pre>
        </details>
      )}
    </>
  );
}

export function EqualLine({ text, slug }: { text: string; slug: string }) {
  const { t } = useWords();
  return (
    <div className="form-field" data-testid={`${slug}-line`}>
      <span className="form-label">{t("command.equal")}</span>
      <Command text={text} />
    </div>
  );
}
