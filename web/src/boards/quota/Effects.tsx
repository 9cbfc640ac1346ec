// The effects of the changed bounds by the plan: admitted pods, evicted pods and the units that get their room, and the result per leaf.
import type { useWhatIf } from "../../api/queries";
import type { QuotaEffects } from "../../api/types";
import { count } from "../../format/format";
import { useWords } from "../../i18n/locale";
import { sentenceWords } from "../../i18n/sentences";
import { Panel } from "../../parts/Panel";
import { Answered, Bones } from "../../parts/States";
import type { Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { RowsCsv } from "../../table/RowsCsv";
import { Faults } from "./Faults";

const MAX_ROWS = 8;

export function Effects({ asked, isLate }: { asked: ReturnType<typeof useWhatIf>; isLate: boolean }) {
  const { t } = useWords();
  return (
    <div className="effects" data-late={isLate} data-testid="what-if-effects" aria-live="polite">
      <Panel slug="what-if" title={t("panel.whatIf")} note={t("quota.nothingWritten")}>
        <Answered asked={asked} bones={<Bones lines={4} />}>
          {(effects) => <EffectTables effects={effects} />}
        </Answered>
      </Panel>
    </div>
  );
}

export function EffectTables({ effects }: { effects: QuotaEffects }) {
  const words = useWords();
  const { sentence } = effects;
  return (
    <>
      <p className="why" data-testid="what-if-sentence">
        {sentenceWords(sentence, words)}
      </p>
      <Faults faults={effects.faults} />
      {effects.valid && (
        <div className="grid">
          <Leaves effects={effects} />
          <Evicted effects={effects} />
          <Admitted effects={effects} />
        </div>
      )}
    </>
  );
}

const plain = { unsortable: true } as const;

function Leaves({ effects }: { effects: QuotaEffects }) {
  const { t } = useWords();
  if (effects.leaves.length === 0) return null;
  const columns: Column<QuotaEffects["leaves"][number]>[] = [
    { ...plain, key: "leaf", head: t("col.quotaName"), width: 130, mono: true, cell: (row) => row.name },
    { ...plain, key: "running", head: t("col.running"), width: 90, number: true, cell: (row) => fromTo(row.runningBefore, row.runningAfter) },
    { ...plain, key: "waiting", head: t("col.waitingPods"), width: 90, number: true, cell: (row) => fromTo(row.waitingBefore, row.waitingAfter) },
  ];
  return <Moved className="c4" slug="what-if-leaves" title={t("quota.leavesEnd")} columns={columns} rows={effects.leaves} rowKey={(row) => row.path} total={effects.leaves.length} />;
}

const fromTo = (before: number, after: number): string => (before === after ? count(after) : `${count(before)} → ${count(after)}`);

function Evicted({ effects }: { effects: QuotaEffects }) {
  const { t } = useWords();
  if (effects.evictedCount === 0) return null;
  const columns: Column<QuotaEffects["evicted"][number]>[] = [
    { ...plain, key: "pod", head: t("node.pod"), width: 190, mono: true, title: (row) => `${row.namespace}/${row.pod}`, cell: (row) => `${row.namespace}/${row.pod}` },
    { ...plain, key: "leaf", head: t("col.quotaName"), width: 110, mono: true, cell: (row) => row.leaf },
    { ...plain, key: "for", head: t("col.forUnit"), width: 190, mono: true, title: (row) => row.forUnit, cell: (row) => row.forUnit },
    { ...plain, key: "how", head: t("col.how"), width: 80, cell: (row) => row.how },
  ];
  return <Moved className="c8" slug="what-if-evicted" title={t("quota.evicted")} columns={columns} rows={effects.evicted} rowKey={(row) => `${row.namespace}/${row.pod}`} total={effects.evictedCount} />;
}

function Admitted({ effects }: { effects: QuotaEffects }) {
  const { t } = useWords();
  if (effects.admittedCount === 0) return null;
  const columns: Column<QuotaEffects["admitted"][number]>[] = [
    { ...plain, key: "pod", head: t("node.pod"), width: 190, mono: true, title: (row) => `${row.namespace}/${row.pod}`, cell: (row) => `${row.namespace}/${row.pod}` },
    { ...plain, key: "leaf", head: t("col.quotaName"), width: 110, mono: true, cell: (row) => row.leaf },
    { ...plain, key: "guaranteed", head: t("col.guaranteed"), width: 120, cell: (row) => t(row.isGuaranteed ? "quota.isGuaranteed" : "quota.borrows") },
  ];
  return <Moved className="c8" slug="what-if-admitted" title={t("quota.admitted")} columns={columns} rows={effects.admitted} rowKey={(row) => `${row.namespace}/${row.pod}`} total={effects.admittedCount} />;
}

interface MovedProps<Row extends object> {
  className: string;
  slug: string;
  title: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  total: number;
}

function Moved<Row extends object>({ className, slug, title, columns, rows, rowKey, total }: MovedProps<Row>) {
  const { t } = useWords();
  return (
    <section className={className}>
      <div className="csv-head">
        <h3>
          {title} <span className="dim num">{total > rows.length ? t("quota.firstOf", { shown: count(rows.length), total: count(total) }) : count(total)}</span>
        </h3>
        <RowsCsv name={slug} rows={rows} />
      </div>
      <DataTable name={slug} caption={title} columns={columns} rows={rows} rowKey={rowKey} maxRows={MAX_ROWS} walkable density="compact" />
    </section>
  );
}
