// Reads a data set into its cache before jobs need it: now, or again and again.
import { useState } from "react";
import { usePreview, type WriteOrder } from "../../api/queries";
import { useWords } from "../../i18n/locale";
import { allFaults, Faults, faultsOf, Field, FormDialog } from "../../parts/FormDialog";
import { useLate } from "../../parts/useLate";
import { useBegin } from "../operations/useBegin";

const segment = encodeURIComponent;
const FIELDS = ["paths", "replicas", "schedule"] as const;

export function PreheatForm({ namespace, name, onClose }: { namespace: string; name: string; onClose: () => void }) {
  const { t } = useWords();
  const [paths, setPaths] = useState("");
  const [replicas, setReplicas] = useState("1");
  const [schedule, setSchedule] = useState("");
  const { write, begin } = useBegin();
  const copies = Number(replicas);
  const body = { paths: paths.split("\n").map((each) => each.trim()).filter(Boolean), replicas: Number.isInteger(copies) ? copies : -1, schedule: schedule.trim() };
  const order: WriteOrder = { method: "POST", path: `/datasets/${segment(namespace)}/${segment(name)}/preheats`, body };
  const asked = JSON.stringify(body);
  const isStill = useLate(asked) === asked;
  const preview = usePreview(isStill ? order : null);
  const faults = allFaults(write.error, preview.data);
  return (
    <FormDialog
      title={t("datasets.preheatTitle", { name: `${namespace}/${name}` })}
      word={t("datasets.preheat")}
      isReady={preview.data?.valid === true && isStill}
      isBusy={write.isPending}
      error={write.error ?? preview.error}
      preview={preview.data}
      testId="preheat-form"
      onSubmit={() => begin(order)}
      onClose={onClose}
    >
      <p className="dim">{t("datasets.preheatWhy")}</p>
      <Field label={t("datasets.paths")} hint={t("datasets.pathsHint")} faults={faultsOf(faults, "paths")}>
        <textarea className="mono" rows={3} value={paths} placeholder="/" onChange={(event) => setPaths(event.target.value)} data-testid="preheat-paths" />
      </Field>
      <Field label={t("datasets.replicas")} faults={faultsOf(faults, "replicas")}>
        <input type="text" value={replicas} maxLength={4} onChange={(event) => setReplicas(event.target.value)} data-testid="preheat-replicas" />
      </Field>
      <Field label={t("datasets.schedule")} hint={t("datasets.scheduleHint")} faults={faultsOf(faults, "schedule")}>
        <input type="text" className="mono" value={schedule} maxLength={100} placeholder="0 3 * * *" onChange={(event) => setSchedule(event.target.value)} data-testid="preheat-schedule" />
      </Field>
      <Faults of={faults.filter(({ path }) => !FIELDS.some((each) => path === each || path.startsWith(`${each}[`)))} testId="preheat-blocked" />
    </FormDialog>
  );
}
