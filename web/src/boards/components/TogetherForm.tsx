// Deploys several components by one click: what each is made of and the checks of all, then one plan, then their operations, one after the other.
import { useState } from "react";
import { usePreview, useWrite, type WriteOrder } from "../../api/queries";
import type { ComponentListRow, ComponentsPlanned, PlannedComponent } from "../../api/types";
import { exactTime, parseTime } from "../../format/format";
import { useWords } from "../../i18n/locale";
import { Checks } from "../../parts/Checks";
import { allFaults, Faults, FormDialog } from "../../parts/FormDialog";
import { useLate } from "../../parts/useLate";
import { CHECK_AGAIN_MS, useStart } from "./PlanForm";
import { Changes, type Draft, draftOf, EqualLine, isOfField, orderOf, PlanAgain, SourceFields, Steps } from "./PlanParts";

interface Props {
  rows: readonly ComponentListRow[];
  onClose: () => void;
}

export function TogetherForm({ rows, onClose }: Props) {
  const [drafts, setDrafts] = useState<Readonly<Record<string, Draft>>>({});
  const [plan, setPlan] = useState<ComponentsPlanned | null>(null);
  if (plan) return <Planned plan={plan} onBack={() => setPlan(null)} onClose={onClose} />;
  return <Asked rows={rows} drafts={drafts} onDraft={(id, draft) => setDrafts({ ...drafts, [id]: draft })} onPlan={setPlan} onClose={onClose} />;
}

const nameOf = (item: PlannedComponent): string => item.components.join(", ");

function Asked({ rows, drafts, onDraft, onPlan, onClose }: Props & { drafts: Readonly<Record<string, Draft>>; onDraft: (id: string, draft: Draft) => void; onPlan: (plan: ComponentsPlanned) => void }) {
  const { t } = useWords();
  const write = useWrite<ComponentsPlanned>();
  const body = { components: rows.map((row) => orderOf(row, "deploy", drafts[row.id] ?? draftOf(row))) };
  const order: WriteOrder = { method: "POST", path: "/plans/together", body };
  const asked = JSON.stringify(body);
  const isStill = useLate(asked) === asked;
  const preview = usePreview<ComponentsPlanned>(isStill ? order : null, CHECK_AGAIN_MS);
  const found = preview.data;
  const faults = allFaults(write.error, found);
  const items = found?.items ?? [];
  const shownRules = new Set(items.flatMap(({ checks }) => checks.map(({ check }) => check)));
  const others = faults.filter(({ path, rule }) => !isOfField(path.slice(path.indexOf(".") + 1)) && !shownRules.has(rule));
  return (
    <FormDialog
      title={t("components.togetherTitle", { n: rows.length })}
      word={t("components.makePlan")}
      isReady={found?.valid === true && isStill}
      isBusy={write.isPending}
      error={write.error ?? preview.error}
      testId="together-form"
      onSubmit={() => write.mutate(order, { onSuccess: onPlan })}
      onClose={onClose}
    >
      <p className="dim">{t("components.togetherWhy")}</p>
      {rows.map((row) => (
        <section key={row.id}>
          <h3 className="mono">{row.id}</h3>
          {row.source === "none" && <p className="dim">{t("components.standIn")}</p>}
          <SourceFields row={row} draft={drafts[row.id] ?? draftOf(row)} prefix={`${row.id}.`} faults={faults} hasNamespace onDraft={(draft) => onDraft(row.id, draft)} />
        </section>
      ))}
      {items.map((item) => (
        <section key={nameOf(item)}>
          <h3 className="mono">{nameOf(item)}</h3>
          <Checks testId={`checks-${item.components[0]}`} of={item.checks} isBusy={preview.isFetching} onAgain={() => void preview.refetch()} />
        </section>
      ))}
      <Faults of={others} testId="plan-faults" />
      {found?.line && <EqualLine text={found.line} />}
    </FormDialog>
  );
}

function Planned({ plan, onBack, onClose }: { plan: ComponentsPlanned; onBack: () => void; onClose: () => void }) {
  const { t } = useWords();
  const start = useStart(plan.planId ?? "", "built-in");
  const n = plan.items.reduce((sum, { components }) => sum + components.length, 0);
  return (
    <FormDialog title={t("components.togetherTitle", { n })} word={t("components.deploy")} isBusy={start.isPending} error={start.error} testId="planned-form" onSubmit={start.begin} onClose={onClose}>
      <p className="dim">{t("components.validUntil", { time: exactTime(parseTime(plan.validUntil)) })}</p>
      {plan.items.map((item) => (
        <section key={nameOf(item)} data-testid={`planned-${item.components[0]}`}>
          <h3 className="mono">{nameOf(item)}</h3>
          <Changes of={item.changes} same={item.same} level={4} />
          <Steps titles={item.steps} />
        </section>
      ))}
      <EqualLine text={plan.line} />
      {start.error && <PlanAgain onBack={onBack} />}
    </FormDialog>
  );
}
