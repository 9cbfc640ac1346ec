// More workers of a data set, or fewer: written at once, after the checks of the server.
import { useState } from "react";
import { useDataset, usePreview, useWrite, type WriteOrder } from "../../api/queries";
import type { DataSetScaled, ScalePreview } from "../../api/types";
import { useWords } from "../../i18n/locale";
import { allFaults, Faults, faultsOf, Field, FormDialog } from "../../parts/FormDialog";
import { useLate } from "../../parts/useLate";
import { CHECK_AGAIN_MS, EqualLine, wholeNumber } from "./CacheParts";
import { Checks } from "../../parts/Checks";

const segment = encodeURIComponent;

export function ScaleForm({ namespace, name, onClose }: { namespace: string; name: string; onClose: () => void }) {
  const { t } = useWords();
  const [workers, setWorkers] = useState("");
  const now = useDataset(namespace, name).data?.runtimes[0]?.wanted;
  const write = useWrite<DataSetScaled>();
  const order: WriteOrder = { method: "PATCH", path: `/datasets/${segment(namespace)}/${segment(name)}`, body: { workers: wholeNumber(workers) } };
  const isStill = useLate(workers) === workers;
  const isAsked = workers.trim() !== "";
  const preview = usePreview<ScalePreview>(isStill && isAsked ? order : null, CHECK_AGAIN_MS);
  const found = isAsked ? preview.data : undefined;
  const checks = found?.checks ?? [];
  const unread = checks.length === 0 ? allFaults(write.error, found) : [];
  return (
    <FormDialog
      title={t("datasets.scaleTitle", { name: `${namespace}/${name}` })}
      word={t("datasets.scale")}
      isReady={found?.valid === true && isStill}
      isBusy={write.isPending}
      error={write.error ?? preview.error}
      preview={found}
      testId="scale-form"
      onSubmit={() => write.mutate(order, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p className="dim">{t("datasets.scaleWhy")}</p>
      <Field label={t("datasets.workerCount")} hint={t("datasets.workerHint")} faults={faultsOf(unread, "workers")}>
        <input type="text" className="mono" value={workers} maxLength={4} placeholder={now === undefined ? "" : String(now)} onChange={(event) => setWorkers(event.target.value)} data-testid="scale-workers" />
      </Field>
      {checks.length > 0 && <Checks of={checks} isBusy={preview.isFetching} testId="scale-checks" onAgain={() => void preview.refetch()} />}
      <Faults of={unread.filter(({ path }) => path !== "workers")} />
      {found?.line && <EqualLine text={found.line} slug="scale" />}
    </FormDialog>
  );
}
