// The quota tree: bounds and use of every node. "What if" changes numbers in thought and shows who would be admitted and who evicted; nothing is written.
import { useEffect, useMemo, useState } from "react";
import { useMe, useQuotaTree, useWhatIf } from "../../api/queries";
import type { QuotaBounds, QuotaTreePage, QuotaTreeRow, TreeFault } from "../../api/types";
import { amount, amountUnit, count } from "../../format/format";
import { useWords, type Words } from "../../i18n/locale";
import { unitWord } from "../../i18n/units";
import { PageHead } from "../../parts/PageHead";
import { Panel } from "../../parts/Panel";
import { Answered, Bones, Empty, FailedRefresh, Warnings } from "../../parts/States";
import { Link } from "../../router/Link";
import { useQueryState } from "../../router/usequery";
import type { Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { Choice, SearchFilter } from "../../table/Filters";
import { asQuestion, type Bound, cellKey, type Changes, found, NO_CHANGES, typed, writtenText } from "./changes";
import { Effects } from "./Effects";
import { Faults } from "./Faults";

const MAX_ROWS = 16;
const TYPING_MS = 400;
const NO_LIMIT = "N/A";
const BOUNDS = "[\u00a0min\u00a0,\u00a0max\u00a0]";

export function TreePage() {
  const { t } = useWords();
  const [params, set] = useQueryState();
  const asked = useQuotaTree();
  const isAsking = params.get("whatif") === "1";
  const above = <Link to="/quota">{t("title.quota")}</Link>;
  return (
    <main className="page" data-testid="page-quota-tree">
      <PageHead title={t("title.quotaTree")} answer={asked.data} onRefresh={() => void asked.refetch()} before={above} />
      <div className="filters">
        <Choice name="resource" label={t("col.resource")} choices={asked.data?.resources ?? []} params={params} set={set} width={190} />
        <button
          type="button"
          className="toggle"
          aria-pressed={isAsking}
          disabled={!asked.data || asked.data.items.length === 0}
          data-testid="action-what-if"
          onClick={() => set({ whatif: isAsking ? null : "1" }, "replace")}
        >
          {t("quota.whatIf")}
        </button>
        <div className="end">
          <SearchFilter params={params} set={set} placeholder={t("quota.searchTree")} />
        </div>
      </div>
      <Warnings of={[asked.data?.warnings]} />
      <FailedRefresh asked={[asked]} />
      <Answered asked={asked} bones={<Bones lines={10} />}>
        {(page) => <Tree page={page} chosen={params.getAll("resource")} search={params.get("q") ?? ""} isAsking={isAsking} />}
      </Answered>
    </main>
  );
}

/** Of the five that always have a table, those that the tree says something of. */
function resourcesShown(page: QuotaTreePage, chosen: readonly string[]): readonly string[] {
  if (chosen.length > 0) return page.resources.filter((resource) => chosen.includes(resource));
  const named = page.resources.filter((resource) => page.items.some((row) => row.bounds.some((each) => each.resource === resource && (each.minText !== "0" || each.maxText !== ""))));
  return named.length > 0 ? named : page.resources;
}

function Tree({ page, chosen, search, isAsking }: { page: QuotaTreePage; chosen: readonly string[]; search: string; isAsking: boolean }) {
  const { t } = useWords();
  const [changes, setChanges] = useState<Changes>(NO_CHANGES);
  const asking = useRested(isAsking ? changes : NO_CHANGES);
  const effects = useWhatIf(useMemo(() => asQuestion(asking), [asking]), useMe().data?.csrf);
  const answered = isAsking && asking.size > 0 ? effects.data : undefined;
  const faultOf = useMemo(() => faultsByNode(answered?.faults ?? []), [answered]);
  const resources = resourcesShown(page, chosen);
  const rows = found(page.items, search);
  const columns = treeColumns(t, page, resources, isAsking ? { changes, setChanges, faultOf } : null);
  if (page.items.length === 0) {
    return (
      <>
        <Faults faults={page.faults} />
        <section className="panel">
          <Empty why={t(page.faults.length > 0 ? "quota.unreadable" : "quota.none")}>
            {t("quota.noneNext")} <code>kubectl -n kube-system get elasticquotatree</code>
          </Empty>
        </section>
      </>
    );
  }
  return (
    <>
      <Faults faults={page.faults} />
      {isAsking && (
        <p className="hint-line">
          {t("quota.whatIfHint")}{" "}
          {changes.size > 0 && (
            <button type="button" className="link" onClick={() => setChanges(NO_CHANGES)} data-testid="action-undo">
              {t("quota.undo", { n: count(changes.size) })}
            </button>
          )}
        </p>
      )}
      <Panel slug="quota-tree" title={t("panel.quotaTree")} note={t("quota.nodes", { n: rows.length })} flush>
        {rows.length === 0 ? (
          <Empty why={t("quota.noneMatch")} />
        ) : (
          <DataTable
            name="quota-tree"
            caption={t("panel.quotaTree")}
            columns={columns}
            rows={rows}
            rowKey={(row) => row.path}
            maxRows={MAX_ROWS}
            walkable
            rowClass={(row) => (row.isLeaf ? undefined : "inner")}
          />
        )}
      </Panel>
      {isAsking && asking.size > 0 && <Effects asked={effects} isLate={asking !== changes || effects.isPlaceholderData} />}
    </>
  );
}

/** What was typed, once nobody has typed for a moment. */
function useRested(changes: Changes): Changes {
  const [rested, setRested] = useState(changes);
  useEffect(() => {
    const timer = setTimeout(() => setRested(changes), changes.size === 0 ? 0 : TYPING_MS);
    return () => clearTimeout(timer);
  }, [changes]);
  return rested;
}

function faultsByNode(faults: readonly TreeFault[]): ReadonlyMap<string, string> {
  const said = new Map<string, string>();
  for (const fault of faults.filter((each) => each.level === "error")) said.set(fault.path, [said.get(fault.path), fault.message].filter(Boolean).join("\n"));
  return said;
}

interface Asking {
  readonly changes: Changes;
  readonly setChanges: (changes: Changes) => void;
  readonly faultOf: ReadonlyMap<string, string>;
}

function treeColumns(t: Words["t"], page: QuotaTreePage, resources: readonly string[], asking: Asking | null): Column<QuotaTreeRow>[] {
  const boundsOf = (row: QuotaTreeRow, resource: string) => row.bounds[page.resources.indexOf(resource)] as QuotaBounds;
  const unitOf = (resource: string) => unitWord(amountUnit(page.items[0]?.bounds[page.resources.indexOf(resource)]?.unit ?? "count"), t);
  return [
    { key: "name", head: t("col.name"), width: 150, mono: true, fixed: true, unsortable: true, title: (row) => row.path, cell: (row) => <Name row={row} fault={asking?.faultOf.get(row.name)} /> },
    { key: "namespaces", head: t("col.namespaces"), width: 130, mono: true, unsortable: true, title: (row) => row.namespaces.join(", "), cell: (row) => row.namespaces.join(", ") || (row.isLeaf ? "-" : "") },
    ...resources.flatMap((resource): Column<QuotaTreeRow>[] => [
      asking
        ? { key: `${resource} bounds`, head: resource, unit: BOUNDS, width: 196, unsortable: true, cell: (row) => <BoundInputs row={row} bounds={boundsOf(row, resource)} asking={asking} /> }
        : { key: `${resource} bounds`, head: resource, unit: BOUNDS, width: 140, mono: true, unsortable: true, cell: (row) => boundsText(boundsOf(row, resource)) },
      { key: `${resource} used`, head: t("col.usedShort"), unit: unitOf(resource), width: 84, number: true, unsortable: true, cell: (row) => amount(boundsOf(row, resource).unit, boundsOf(row, resource).used) },
    ]),
    { key: "waiting", head: t("col.waitingPods"), width: 84, number: true, unsortable: true, cell: (row) => (row.waitingPods > 0 ? count(row.waitingPods) : "") },
  ];
}

/** As quantities, in their shortest form. */
const boundsText = (bounds: QuotaBounds): string => `[ ${bounds.minText} , ${bounds.maxText || NO_LIMIT} ]`;

/** Indented by text, not by an element: there are many rows. */
function Name({ row, fault }: { row: QuotaTreeRow; fault: string | undefined }) {
  const name = "\u2003".repeat(row.depth) + row.shortName;
  return fault ? (
    <span className="flag broken" title={fault}>
      {name} !
    </span>
  ) : (
    name
  );
}

function BoundInputs({ row, bounds, asking }: { row: QuotaTreeRow; bounds: QuotaBounds; asking: Asking }) {
  const { t } = useWords();
  const input = (bound: Bound) => {
    const key = cellKey(row.name, bounds.resource, bound);
    const text = asking.changes.get(key);
    return (
      <input
        className="bound"
        aria-label={t(bound === "min" ? "quota.minOf" : "quota.maxOf", { resource: bounds.resource, node: row.name })}
        aria-invalid={text !== undefined && asking.faultOf.has(row.name)}
        data-changed={text !== undefined}
        data-testid={`bound-${row.name}-${bounds.resource}-${bound}`}
        value={text ?? writtenText(bounds, bound)}
        placeholder={bound === "max" ? t("quota.unlimited") : "0"}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => asking.setChanges(typed(asking.changes, row.name, bounds, bound, event.target.value))}
      />
    );
  };
  return (
    <span className="bounds">
      {input("min")}
      {input("max")}
    </span>
  );
}
