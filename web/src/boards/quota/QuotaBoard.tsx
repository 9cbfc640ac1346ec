// The Quota board: one table per resource in the server's order, each row with its bar: used, guaranteed, borrowed, limit.
import { useMemo } from "react";
import { useQuota, useUsage } from "../../api/queries";
import type { QuotaAnswer, QuotaRow } from "../../api/types";
import { amount, amountUnit, count, heldHours } from "../../format/format";
import { useWords, type Words } from "../../i18n/locale";
import { unitWord } from "../../i18n/units";
import { PageHead } from "../../parts/PageHead";
import { Panel } from "../../parts/Panel";
import { Answered, Bones, Empty, FailedRefresh, Loading, Warnings } from "../../parts/States";
import { useInSight } from "../../parts/useSeen";
import { Link } from "../../router/Link";
import { pick } from "../../router/query";
import { useQueryState } from "../../router/usequery";
import { type Column, isShown, rowHeight, type TableView, useTableView } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { Choice, SearchFilter } from "../../table/Filters";
import { TableTools } from "../../table/TableTools";
import { Faults } from "./Faults";
import { FirstTree } from "./FirstTree";
import { type HeldHours, heldOf, hoursOf, hoursUnit } from "./hours";
import { Bar } from "./QuotaBar";
import { isNothing, minText, minWords, type QuotaLine, quotaLines, shortName } from "./rows";
import { TreePanel } from "./TreeGrid";
import { UserUse } from "./UserUse";
import { OVER_WIDTH, UsedAmount } from "./UsedAmount";
import { LeafWaiting, WaitingFacts, WaitingPanel } from "./Waiting";

const FILTERS = ["path", "name", "resource", "q"] as const;
const ALL_ROWS = "500";
const NO_LIMIT = "N/A";
const MAX_ROWS = 10;
const HEAD_HEIGHT = 44;
/** Hours of the past, beside the present. */
const HOURS_OF = new URLSearchParams({ period: "30d", by: "leaf", size: ALL_ROWS });

export function QuotaBoard() {
  const { t } = useWords();
  const [params, set] = useQueryState();
  const asking = useMemo(() => {
    const asked = pick(params, FILTERS);
    asked.set("size", ALL_ROWS);
    return asked;
  }, [params]);
  const asked = useQuota(asking);
  const facets = asked.data?.facets;
  const view = useTableView("quota");
  const open = params.get("open");
  const leaf = params.get("leaf");
  return (
    <main className="page" data-testid="page-quota">
      <PageHead title={t("title.quota")} answer={asked.data} onRefresh={() => void asked.refetch()} />
      <div className="filters">
        <Choice name="path" label={t("col.quotaPath")} choices={facets?.["path"] ?? []} params={params} set={set} width={180} />
        <Choice name="name" label={t("col.quotaName")} choices={facets?.["name"] ?? []} params={params} set={set} width={200} />
        <Choice name="resource" label={t("col.resource")} choices={facets?.["resource"] ?? asked.data?.resources ?? []} params={params} set={set} width={190} />
        <div className="end">
          <Link to="/quota/tree" className="toolink" data-testid="link-quota-tree">
            {t("quota.toTree")}
          </Link>
          <SearchFilter params={params} set={set} placeholder={t("quota.search")} />
        </div>
      </div>
      <Faults faults={asked.data?.faults ?? []} />
      <Warnings of={[asked.data?.warnings]} />
      <FailedRefresh asked={[asked]} />
      <Answered asked={asked} bones={<QuotaBones />}>
        {(answer) => (answer.faults.some((fault) => fault.stops) && answer.items.length === 0 ? null : <QuotaTables answer={answer} asking={asking} view={view} filtered={FILTERS.some((key) => params.has(key))} clear={() => set(Object.fromEntries(FILTERS.map((key) => [key, null])))} />)}
      </Answered>
      {!open && leaf && <LeafWaiting path={leaf} onClose={() => set({ leaf: null })} />}
      {open && <WaitingFacts key={open} unit={open} onClose={() => set({ open: null })} />}
    </main>
  );
}

function QuotaBones() {
  return (
    <div className="panel">
      <Bones lines={8} />
    </div>
  );
}

function QuotaTables({ answer, asking, view, filtered, clear }: { answer: QuotaAnswer; asking: URLSearchParams; view: TableView; filtered: boolean; clear: () => void }) {
  const { t } = useWords();
  const set = useQueryState()[1];
  // A console without a ledger answers 404, and an empty ledger knows no hours: then there is no such column.
  const ledger = useUsage(HOURS_OF).data;
  const hours = useMemo(() => (ledger && !ledger.warnings.some(({ code }) => code === "ledger-empty" || code === "ledger-off") ? hoursOf(ledger.items) : null), [ledger]);
  if (answer.items.length === 0) {
    return (
      <section className="panel">
        {filtered ? (
          <Empty why={t("quota.noneMatch")}>
            <div className="actions">
              <button type="button" className="link" onClick={clear}>
                {t("filter.clear")}
              </button>
            </div>
          </Empty>
        ) : (
          <Empty why={t("quota.none")}>
            <FirstTree warnings={answer.warnings} />
          </Empty>
        )}
      </section>
    );
  }
  return (
    <>
      <WaitingPanel />
      <BarLegend />
      <TreePanel onLeaf={(path) => set({ leaf: path, open: null })} />
      {answer.resources.map((resource) => (
        <QuotaTable key={resource} resource={resource} answer={answer} asking={asking} view={view} hours={hours} />
      ))}
      <UserUse answer={answer} />
    </>
  );
}

function BarLegend() {
  const { t } = useWords();
  return (
    <div className="qlegend">
      <span>
        <i className="within" />
        {t("quota.within")}
      </span>
      <span>
        <i className="borrowed" />
        {t("quota.borrowed")}
      </span>
      <span>
        <i className="wait" />
        {t("quota.waiting")}
      </span>
      <span>
        <i className="min" />
        {t("quota.min")}
      </span>
    </div>
  );
}

const slugOf = (resource: string): string => `quota-${resource.replaceAll(/[^a-z0-9]+/g, "-")}`;

/** A tree of hundreds of leaves does not fit into one answer: then each table asks for its own resource when it comes into sight. */
function useRows(answer: QuotaAnswer, params: URLSearchParams, inSight: boolean): { rows: readonly QuotaRow[]; total: number } {
  const whole = answer.total <= answer.items.length;
  const own = useQuota(params, !whole && inSight).data;
  return whole || !own ? { rows: answer.items, total: 0 } : { rows: own.items, total: own.total };
}

function QuotaTable({ resource, answer, asking, view, hours }: { resource: string; answer: QuotaAnswer; asking: URLSearchParams; view: TableView; hours: HeldHours | null }) {
  const { t } = useWords();
  const [ref, inSight] = useInSight();
  const params = useMemo(() => {
    const own = new URLSearchParams(asking);
    own.set("resource", resource);
    return own;
  }, [asking, resource]);
  const { rows, total } = useRows(answer, params, inSight);
  const lines = useMemo(() => quotaLines(rows, resource), [rows, resource]);
  const unit = lines[0]?.row.unit ?? "count";
  const isOver = lines.some((line) => line.row.overMax > 0);
  const columns = useMemo(() => quotaColumns(t, unit, isOver, hours && hoursUnit(resource) ? { of: hours, resource } : null), [t, unit, isOver, hours, resource]);
  const shown = new Set(lines.map((line) => line.row.path)).size;
  const [query, set] = useQueryState();
  const unfolded = query.getAll("unfold");
  if (lines.length === 0 && answer.total <= answer.items.length) return null;
  const isOpen = !isNothing(lines) || unfolded.includes(resource);
  if (!isOpen)
    return (
      <Panel
        slug={slugOf(resource)}
        title={t("panel.quota", { resource })}
        note={t("quota.nothing")}
        tools={
          <button type="button" className="link" aria-expanded={false} onClick={() => set({ unfold: [...unfolded, resource] }, "replace")} data-testid={`unfold-${slugOf(resource)}`}>
            {t("quota.unfold")}
          </button>
        }
        folded
      />
    );
  return (
    <Panel
      slug={slugOf(resource)}
      title={t("panel.quota", { resource })}
      note={total > shown ? t("quota.more", { shown: count(shown), total: count(total) }) : undefined}
      tools={<TableTools view={view} columns={columns} csv={{ path: "/quota/usage", params }} command="quota" />}
      flush
    >
      <div ref={ref} style={{ minHeight: Math.min(MAX_ROWS, Math.max(1, lines.length)) * rowHeight(view.density) + HEAD_HEIGHT }}>
        {inSight && lines.length === 0 && <Loading />}
        {inSight && lines.length > 0 && (
          <DataTable
            name={slugOf(resource)}
            caption={t("panel.quota", { resource })}
            columns={columns.filter((c) => isShown(c, view))}
            rows={lines}
            rowKey={(line) => line.key}
            density={view.density}
            maxRows={MAX_ROWS}
            walkable
            rowClass={(line) => ({ inner: "inner", leaf: undefined, namespace: "part" })[line.kind]}
          />
        )}
      </div>
    </Panel>
  );
}

interface Held {
  readonly of: HeldHours;
  readonly resource: string;
}

/** `isOver`: a node uses more than its max. `held`: hours of the last 30 days; `null` without a ledger. */
export function quotaColumns(t: Words["t"], unit: string, isOver: boolean, held: Held | null = null): Column<QuotaLine>[] {
  const shown = unitWord(amountUnit(unit), t);
  const own = (line: QuotaLine, value: number | null) => (line.namespace === null ? amount(unit, value) : "");
  const head = { unit: shown, number: true, unsortable: true };
  return [
    { key: "name", head: t("col.quotaName"), width: 148, mono: true, fixed: true, title: (l) => l.row.path, cell: nameOf },
    { key: "namespaces", head: t("col.namespace"), width: 130, mono: true, cell: (l) => <Namespaces line={l} /> },
    { key: "resource", head: t("col.resource"), width: 146, mono: true, cell: (l) => l.row.resource },
    { ...head, key: "max", head: t("col.max"), width: 84, cell: (l) => (l.row.max === null ? NO_LIMIT : amount(unit, l.row.max)) },
    { ...head, key: "min", head: t("col.min"), width: 84, title: (l) => minWords(unit, l.row.min, l.row.minWritten, t), cell: (l) => minText(unit, l.row.min, l.row.minWritten) },
    { ...head, key: "used", head: t("col.used"), width: isOver ? OVER_WIDTH : 92, title: (l) => lostWords(l, t), cell: (l) => <UsedAmount text={usedText(unit, l)} unit={unit} over={l.namespace === null ? l.row.overMax : 0} t={t} /> },
    { key: "bar", head: t("col.bar"), width: 170, drawn: true, unsortable: true, cell: (l) => (l.namespace === null ? <Bar of={l.row} t={t} /> : "") },
    ...(held ? [hoursColumn(t, held)] : []),
    { ...head, key: "borrowed", head: t("col.borrowed"), width: 84, cell: (l) => own(l, l.row.borrowed) },
    { key: "waitingPods", head: t("col.waitingPods"), width: 84, number: true, unsortable: true, cell: (l) => (l.namespace === null ? count(l.row.waitingPods) : "") },
    { key: "waitingJobs", head: t("col.waitingJobs"), width: 76, number: true, unsortable: true, optional: true, cell: (l) => (l.namespace === null ? count(l.row.waitingJobs) : "") },
    { ...head, key: "requested", head: t("col.requested"), width: 110, optional: true, cell: (l) => own(l, l.row.requested) },
    { ...head, key: "claimed", head: t("col.claimed"), width: 100, optional: true, cell: (l) => own(l, l.row.claimed) },
    { ...head, key: "lost", head: t("col.lost"), width: 84, optional: true, cell: (l) => own(l, l.row.lost) },
    { ...head, key: "lent", head: t("col.lent"), width: 100, optional: true, cell: (l) => own(l, l.row.lent) },
  ];
}

function hoursColumn(t: Words["t"], { of, resource }: Held): Column<QuotaLine> {
  const hours = (line: QuotaLine) => (line.namespace === null ? heldOf(of, line.row.path, resource) : null);
  const words = (line: QuotaLine) => t("quota.hoursTitle", { resource, hours: heldHours(hours(line)) });
  return { key: "hours", head: t("quota.hours"), unit: hoursUnit(resource), width: 96, number: true, unsortable: true, title: (line) => (line.namespace === null ? words(line) : ""), cell: (line) => (line.namespace === null ? heldHours(hours(line)) : "") };
}

const usedText = (unit: string, line: QuotaLine): string => (hasLost(line) ? `${amount(unit, line.used)} +${amount(unit, line.row.lost)}` : amount(unit, line.used));

const hasLost = (line: QuotaLine): boolean => line.namespace === null && line.row.lost > 0;

/** Why less is charged than is held. */
const lostWords = (line: QuotaLine, t: Words["t"]): string => (hasLost(line) ? t("quota.lost") : "");

/** Indented by text, not by an element: there are many rows. */
function nameOf(line: QuotaLine): string {
  return "\u2003".repeat(line.row.depth) + shortName(line.row);
}

function Namespaces({ line }: { line: QuotaLine }) {
  const { t } = useWords();
  const { row, namespace } = line;
  const one = namespace ?? (row.isLeaf && row.namespaces.length === 1 ? row.namespaces[0] : undefined);
  if (one) return <Link to={`/jobs?job_namespace=${encodeURIComponent(one)}`}>{one}</Link>;
  if (!row.isLeaf) return "";
  return row.namespaces.length > 1 ? <span className="dim">{t("quota.allNamespaces")}</span> : "-";
}
