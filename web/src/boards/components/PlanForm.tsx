// Deploys, upgrades or uninstalls a component: what it is made of and all checks, then the plan with each field that changes, then the operation.
import { useState } from "react";
import { usePreview, useWrite, type WriteOrder } from "../../api/queries";
import type { Begun, ComponentListRow, ComponentPlanned, StoreChecked } from "../../api/types";
import { exactTime, parseTime } from "../../format/format";
import { useWords } from "../../i18n/locale";
import { Checks } from "../../parts/Checks";
import { allFaults, Faults, Field, FormDialog } from "../../parts/FormDialog";
import { useLate } from "../../parts/useLate";
import { navigate } from "../../router/router";
import { Changes, type Draft, draftOf, EqualLine, isOfField, orderOf, PlanAgain, SourceFields, Steps } from "./PlanParts";
import { type Store, StoreChoice } from "./StoreChoice";

export type Do = "deploy" | "upgrade" | "remove";

/** The cluster changes while the dialog is open: what mends a check is seen without a click, too. */
export const CHECK_AGAIN_MS = 15_000;

interface Props {
  row: ComponentListRow;
  act: Do;
  onClose: () => void;
}

export function PlanForm({ row, act, onClose }: Props) {
  const [draft, setDraft] = useState(() => draftOf(row));
  const [store, setStore] = useState<Store | "built-in" | null>("built-in");
  const [plan, setPlan] = useState<ComponentPlanned | null>(null);
  if (plan) return <Planned row={row} act={act} plan={plan} store={store} onBack={() => setPlan(null)} onClose={onClose} />;
  return <Asked row={row} act={act} draft={draft} store={store} onStore={setStore} onDraft={setDraft} onPlan={setPlan} onClose={onClose} />;
}

interface AskedProps extends Props {
  draft: Draft;
  store: Store | "built-in" | null;
  onStore: (store: Store | "built-in" | null) => void;
  onDraft: (draft: Draft) => void;
  onPlan: (plan: ComponentPlanned) => void;
}

/** The values of an installation that name a store: a volume is for the built-in one. */
export const storeValues = (store: Store | "built-in" | null): string => (store && store !== "built-in" ? `store:\n  url: ${JSON.stringify(store.url)}\n  size: ""\n` : "");

/** First: what it is made of, and the checks. */
function Asked({ row, act, draft, store, onStore, onDraft, onPlan, onClose }: AskedProps) {
  const { t } = useWords();
  const write = useWrite<ComponentPlanned>();
  const body = orderOf(row, act, draft);
  const order: WriteOrder = { method: "POST", path: "/plans", body };
  const asked = JSON.stringify(body);
  const isStill = useLate(asked) === asked;
  const preview = usePreview<ComponentPlanned>(isStill ? order : null, CHECK_AGAIN_MS);
  const found = preview.data;
  const faults = allFaults(write.error, found);
  const checks = found?.checks ?? [];
  // Checks show their own faults, with what mends them.
  const others = faults.filter(({ path, rule }) => !isOfField(path) && !checks.some(({ check }) => check === rule));
  const makes = act !== "remove";
  const why = !makes ? (row.source === "part" ? "components.partRemoveWhy" : "components.removeWhy") : row.source === "none" ? "components.standIn" : "components.why";
  return (
    <FormDialog
      title={t(`components.${act}Title`, { id: row.id })}
      word={t("components.makePlan")}
      isReady={found?.valid === true && isStill && store !== null}
      isBusy={write.isPending}
      error={write.error ?? preview.error}
      testId="plan-form"
      onSubmit={() => write.mutate(order, { onSuccess: onPlan })}
      onClose={onClose}
    >
      <p className="dim">{t(why)}</p>
      {makes && row.source === "part" && row.id === "console" && (
        <StoreChoice
          hint={t("components.storeSecretHint")}
          onStore={(chosen) => {
            onStore(chosen);
            onDraft({ ...draft, values: storeValues(chosen) });
          }}
        />
      )}
      {makes && <SourceFields row={row} draft={draft} faults={faults} hasNamespace={act === "deploy"} onDraft={onDraft} />}
      {act === "remove" && row.source !== "part" && (
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
function Planned({ row, act, plan, store, onBack, onClose }: Props & { plan: ComponentPlanned; store: Store | "built-in" | null; onBack: () => void }) {
  const { t } = useWords();
  const [typed, setTyped] = useState("");
  const start = useStart(plan.planId ?? "", store);
  const isRemoval = act === "remove";
  return (
    <FormDialog
      title={t(`components.${act}Title`, { id: row.id })}
      word={t(`components.${act}`)}
      isDestructive={isRemoval}
      isReady={!isRemoval || typed === row.id}
      isBusy={start.isPending}
      error={start.error}
      testId="planned-form"
      onSubmit={start.begin}
      onClose={onClose}
    >
      <p className="dim">{t("components.validUntil", { time: exactTime(parseTime(plan.validUntil)) })}</p>
      <Changes of={plan.changes} same={plan.same} />
      <Steps titles={plan.steps} />
      <EqualLine text={plan.line} />
      {isRemoval && (
        <Field label={t("form.typeName", { name: row.id })}>
          <input type="text" className="mono" value={typed} autoComplete="off" onChange={(event) => setTyped(event.target.value)} data-testid="plan-name" />
        </Field>
      )}
      {start.error && <PlanAgain onBack={onBack} />}
    </FormDialog>
  );
}

/** Starts a plan. The password of an external database is written first, and only then. */
export function useStart(planId: string, store: Store | "built-in" | null) {
  const password = useWrite<StoreChecked>();
  const start = useWrite<Begun>();
  const run = () =>
    start.mutate(
      { method: "POST", path: "/operations", body: { planId } },
      { onSuccess: ({ operation }) => navigate(`/operations/${encodeURIComponent(operation)}`) },
    );
  const begin = () => {
    if (store === null || store === "built-in" || store.password === "") return run();
    password.mutate({ method: "POST", path: "/components/console/store-password", body: { url: store.url, password: store.password } }, { onSuccess: run });
  };
  return { begin, isPending: password.isPending || start.isPending, error: password.error ?? start.error };
}
