// Deploys, upgrades or uninstalls a component: what it is made of and all checks, then the plan with each field that changes, then the operation.
import { useState } from "react";
import { usePreview, useWrite, type WriteOrder } from "../../api/queries";
import type { Begun, ChangedObject, ComponentListRow, ComponentPlanned } from "../../api/types";
import { exactTime, parseTime } from "../../format/format";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Checks } from "../../parts/Checks";
import { Command } from "../../parts/Copy";
import { allFaults, Faults, faultsOf, Field, FormDialog } from "../../parts/FormDialog";
import { useLate } from "../../parts/useLate";
import { navigate } from "../../router/router";

export type Do = "deploy" | "upgrade" | "remove";

/** The cluster changes while the dialog is open: what mends a check is seen without a click, too. */
const CHECK_AGAIN_MS = 15_000;
const EMPTY = { chart: "", version: "", manifests: "", values: "", namespace: "", deleteDefinitions: false };
const FIELDS = ["chart", "version", "manifests", "values", "namespace"];
type Draft = typeof EMPTY;

interface Props {
  row: ComponentListRow;
  act: Do;
  onClose: () => void;
}

export function PlanForm({ row, act, onClose }: Props) {
  const [draft, setDraft] = useState(EMPTY);
  const [plan, setPlan] = useState<ComponentPlanned | null>(null);
  if (plan) return <Planned row={row} act={act} plan={plan} onBack={() => setPlan(null)} onClose={onClose} />;
  return <Asked row={row} act={act} draft={draft} onDraft={setDraft} onPlan={setPlan} onClose={onClose} />;
}

/** First: what it is made of, and the checks. */
function Asked({ row, act, draft, onDraft, onPlan, onClose }: Props & { draft: Draft; onDraft: (draft: Draft) => void; onPlan: (plan: ComponentPlanned) => void }) {
  const { t } = useWords();
  const write = useWrite<ComponentPlanned>();
  const body = { component: row.id, do: act, ...draft, chart: draft.chart.trim(), version: draft.version.trim(), namespace: draft.namespace.trim() };
  const order: WriteOrder = { method: "POST", path: "/plans", body };
  const asked = JSON.stringify(body);
  const isStill = useLate(asked) === asked;
  const preview = usePreview<ComponentPlanned>(isStill ? order : null, CHECK_AGAIN_MS);
  const found = preview.data;
  const faults = allFaults(write.error, found);
  const checks = found?.checks ?? [];
  // Checks show their own faults, with what mends them.
  const others = faults.filter(({ path, rule }) => !FIELDS.includes(path) && !checks.some(({ check }) => check === rule));
  const line = (key: "chart" | "version" | "namespace", placeholder: string) => (
    <input type="text" className="mono" value={draft[key]} maxLength={500} placeholder={placeholder} onChange={(event) => onDraft({ ...draft, [key]: event.target.value })} data-testid={`plan-${key}`} />
  );
  const area = (key: "manifests" | "values") => (
    <textarea className="mono" rows={4} spellCheck={false} value={draft[key]} onChange={(event) => onDraft({ ...draft, [key]: event.target.value })} data-testid={`plan-${key}`} />
  );
  const makes = act !== "remove";
  return (
    <FormDialog
      title={t(`components.${act}Title`, { id: row.id })}
      word={t("components.makePlan")}
      isReady={found?.valid === true && isStill}
      isBusy={write.isPending}
      error={write.error ?? preview.error}
      testId="plan-form"
      onSubmit={() => write.mutate(order, { onSuccess: onPlan })}
      onClose={onClose}
    >
      <p className="dim">{t(makes ? (row.source === "none" ? "components.standIn" : "components.why") : "components.removeWhy")}</p>
      {makes && row.source === "chart" && (
        <>
          <Field label={t("components.chart")} hint={t("components.chartHint")} faults={faultsOf(faults, "chart")}>
            {line("chart", `oci://registry.example.com/charts/${row.id}`)}
          </Field>
          <Field label={t("components.chartVersion")} hint={t("components.chartVersionHint")} faults={faultsOf(faults, "version")}>
            {line("version", row.available)}
          </Field>
          <Field label={t("components.values")} hint={t("components.valuesHint")} faults={faultsOf(faults, "values")}>
            {area("values")}
          </Field>
        </>
      )}
      {makes && row.source === "manifests" && (
        <Field label={t("components.manifests")} hint={t("components.manifestsHint")} faults={faultsOf(faults, "manifests")}>
          {area("manifests")}
        </Field>
      )}
      {act === "deploy" && (
        <Field label={t("col.namespace")} hint={t("components.namespaceHint")} faults={faultsOf(faults, "namespace")}>
          {line("namespace", "")}
        </Field>
      )}
      {act === "remove" && (
        <div className="form-field">
          <label className="form-row">
            <span>
              <input type="checkbox" checked={draft.deleteDefinitions} onChange={(event) => onDraft({ ...draft, deleteDefinitions: event.target.checked })} data-testid="plan-definitions" /> {t("components.deleteDefinitions")}
            </span>
          </label>
        </div>
      )}
      {checks.length > 0 && <Checks testId="plan-checks" of={checks} isBusy={preview.isFetching} onAgain={() => void preview.refetch()} />}
      <Faults of={others} testId="plan-faults" />
      {found?.line && <EqualLine text={found.line} />}
    </FormDialog>
  );
}

/** Then: the plan, which is carried out as it is shown, or not at all. */
function Planned({ row, act, plan, onBack, onClose }: Props & { plan: ComponentPlanned; onBack: () => void }) {
  const { t } = useWords();
  const [typed, setTyped] = useState("");
  const write = useWrite<Begun>();
  const order: WriteOrder = { method: "POST", path: "/operations", body: { planId: plan.planId } };
  const isRemoval = act === "remove";
  return (
    <FormDialog
      title={t(`components.${act}Title`, { id: row.id })}
      word={t(`components.${act}`)}
      isDestructive={isRemoval}
      isReady={!isRemoval || typed === row.id}
      isBusy={write.isPending}
      error={write.error}
      testId="planned-form"
      onSubmit={() => write.mutate(order, { onSuccess: ({ operation }) => navigate(`/operations/${encodeURIComponent(operation)}`) })}
      onClose={onClose}
    >
      <p className="dim">{t("components.validUntil", { time: exactTime(parseTime(plan.validUntil)) })}</p>
      <Changes of={plan.changes} same={plan.same} />
      <details>
        <summary>{t("components.steps", { n: plan.steps.length })}</summary>
        <ol className="plan-steps" lang="en">
          {plan.steps.map((title, index) => (
            // Two steps may have one title; their order never changes.
            // oxlint-disable-next-line react/no-array-index-key -- as above
            <li key={`${index} ${title}`}>{shown(title)}</li>
          ))}
        </ol>
      </details>
      <EqualLine text={plan.line} />
      {isRemoval && (
        <Field label={t("form.typeName", { name: row.id })}>
          <input type="text" className="mono" value={typed} autoComplete="off" onChange={(event) => setTyped(event.target.value)} data-testid="plan-name" />
        </Field>
      )}
      {write.error && (
        <p>
          <button type="button" className="link" onClick={onBack} data-testid="plan-again">
            {t("components.planAgain")}
          </button>
        </p>
      )}
    </FormDialog>
  );
}

export function EqualLine({ text }: { text: string }) {
  const { t } = useWords();
  return (
    <div className="form-field" data-testid="plan-line">
      <span className="form-label">{t("command.equal")}</span>
      <Command text={text} />
    </div>
  );
}

const SHOWN_MAX = 200;

function Changes({ of: changes, same }: { of: readonly ChangedObject[]; same: number }) {
  const { t, code } = useWords();
  return (
    <section data-testid="plan-changes">
      <h3>{t("components.changes", { n: changes.length })}</h3>
      <ul className="changes">
        {changes.slice(0, SHOWN_MAX).map((each) => (
          <li key={`${each.do} ${each.kind} ${each.namespace}/${each.name}`} data-do={each.do}>
            <span className="effect-verb">{code("components.do", each.do, {}, each.do)}</span> {shown(each.kind)} <span className="mono">{shown(each.namespace ? `${each.namespace}/${each.name}` : each.name)}</span>
            {each.fields.length > 0 && (
              <dl>
                {each.fields.map(({ path, old, new: now }) => (
                  <FieldChange key={path} path={path} old={old} now={now} />
                ))}
              </dl>
            )}
          </li>
        ))}
        {changes.length > SHOWN_MAX && <li className="dim">{t("form.more", { n: changes.length - SHOWN_MAX })}</li>}
      </ul>
      {same > 0 && <p className="dim">{t("components.same", { n: same })}</p>}
    </section>
  );
}

function FieldChange({ path, old, now }: { path: string; old: string; now: string }) {
  return (
    <>
      <dt className="mono">{shown(path)}</dt>
      <dd className="mono">
        <del>{shown(old) || "-"}</del> → <ins>{shown(now) || "-"}</ins>
      </dd>
    </>
  );
}
