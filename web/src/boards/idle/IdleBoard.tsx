// Idle: GPUs for which money is spent and on which nothing runs, who holds them, and what the money of all GPUs was spent on.
import { useMemo } from "react";
import { useIdle } from "../../api/queries";
import type { IdleList, IdleRow, NodeGpuMoney } from "../../api/types";
import { useWords, type Words } from "../../i18n/locale";
import { count, gpus, heldHours, money } from "../../format/format";
import { shown } from "../../format/shown";
import { sentenceWords } from "../../i18n/sentences";
import { Ago } from "../../parts/Ago";
import { PageHead } from "../../parts/PageHead";
import { Panel } from "../../parts/Panel";
import { Empty, FailedRefresh, Warnings } from "../../parts/States";
import { Link } from "../../router/Link";
import { listQuery } from "../../router/query";
import { type SetQuery, useQueryState } from "../../router/usequery";
import type { Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { Choice, SearchFilter } from "../../table/Filters";
import { ListTable } from "../../table/ListTable";
import { RowsCsv } from "../../table/RowsCsv";
import { useKept } from "../../table/useKept";
import { Period } from "../usage/Period";
import { periodQuery } from "../usage/period";
import { Unrecorded } from "../usage/Unrecorded";
import { partWord } from "../usage/words";
import { SplitBar, SplitList } from "./SplitBar";

const CHOICES = ["reason", "namespace", "user", "model"] as const;
const FILTERS = ["q", ...CHOICES] as const;
const MAX_ROWS = 12;

export const idleKey = (row: Pick<IdleRow, "reason" | "namespace" | "pod" | "node">): string => [row.reason, row.namespace, row.pod, row.node].join("/");

export function IdleBoard() {
  const words = useWords();
  const { t } = words;
  const [params, set] = useQueryState();
  const asking = useMemo(() => new URLSearchParams([...periodQuery(params), ...listQuery(params, [...FILTERS, "sort"])]), [params]);
  const asked = useKept(useIdle(asking), asking);
  const answer = asked.data;
  const currency = answer?.currency ?? "";
  const columns = useMemo(() => idleColumns(words, currency), [words, currency]);
  return (
    <main className="page" data-testid="page-idle">
      <PageHead title={t("title.idle")} answer={answer} onRefresh={() => void asked.refetch()} />
      <div className="filters">
        <Period />
        <Choices params={params} set={set} facets={answer?.facets} />
        <div className="end">
          <SearchFilter params={params} set={set} placeholder={t("idle.search")} />
        </div>
      </div>
      <Warnings of={[answer?.warnings]} />
      <FailedRefresh asked={[asked]} />
      {answer && <Unrecorded period={answer.period} hasPrices={currency !== ""} />}
      {answer?.totals && <Split answer={answer} />}
      <ListTable<IdleRow>
        name="idle"
        slug="idle"
        title={t("idle.table")}
        path="/idle"
        command="idle"
        asked={asked}
        asking={asked.shown}
        filters={FILTERS}
        columns={columns}
        rowKey={idleKey}
        noneMatch={t("idle.noneMatch")}
        none={<Empty why={t("idle.none")}>{t("idle.noneNext")}</Empty>}
      />
      {answer && answer.nodes.length > 0 && <Nodes answer={answer} />}
    </main>
  );
}

function Choices({ params, set, facets }: { params: URLSearchParams; set: SetQuery; facets: IdleList["facets"] | undefined }) {
  const { t } = useWords();
  const choice = (name: (typeof CHOICES)[number], label: string, width: number, nameOf?: (word: string) => string) => (
    <Choice name={name} label={label} choices={facets?.[name] ?? []} params={params} set={set} width={width} {...(nameOf && { nameOf })} />
  );
  return (
    <>
      {choice("reason", t("idle.reason"), 116, (word) => partWord(word, t))}
      {choice("namespace", t("col.namespace"), 140)}
      {choice("user", t("col.user"), 104)}
      {choice("model", t("usage.model"), 140)}
    </>
  );
}

function Split({ answer: { totals, currency } }: { answer: IdleList }) {
  const { t } = useWords();
  if (totals === null) return null;
  return (
    <Panel slug="idle-split" title={t("idle.split")} note={currency === "" ? t("idle.splitHours", { hours: heldHours(totals.gpuHours) }) : t("idle.splitMoney", { hours: heldHours(totals.gpuHours), cost: money(totals.cost), currency })}>
      <SplitBar of={totals} label={t("idle.split")} />
      <SplitList of={totals} currency={currency} />
    </Panel>
  );
}

function Nodes({ answer: { nodes, currency } }: { answer: IdleList }) {
  const { t } = useWords();
  const columns = useMemo(() => nodeColumns(t, currency), [t, currency]);
  return (
    <Panel slug="idle-nodes" title={t("idle.nodes")} note={t("idle.nodesNote", { n: nodes.length })} tools={<RowsCsv name="idle-nodes" rows={nodes} />} flush>
      <DataTable name="idle-nodes" caption={t("idle.nodes")} columns={columns} rows={nodes} rowKey={(row) => row.node} maxRows={MAX_ROWS} walkable />
    </Panel>
  );
}

/** Who it belongs to: the job, else the pod; a node's own GPUs belong to no pod. */
function Owner({ row }: { row: IdleRow }) {
  if (row.pod === "") return <Link to={`/nodes/${encodeURIComponent(row.node)}`}>{row.node}</Link>;
  if (row.job !== "") return <Link to={`/jobs/${[row.namespace, row.jobType, row.job].map(encodeURIComponent).join("/")}?tab=cost`}>{row.job}</Link>;
  return <Link to={`/gpus?q=${encodeURIComponent(row.pod)}&open=${encodeURIComponent(`${row.namespace}/${row.pod}`)}`}>{row.pod}</Link>;
}

function idleColumns(words: Words, currency: string): Column<IdleRow>[] {
  const { t } = words;
  return [
    { key: "reason", head: t("idle.reason"), width: 72, cell: (row) => partWord(row.reason, t) },
    { key: "user", head: t("col.user"), width: 78, title: (row) => row.user, cell: (row) => (row.user ? <Link to={`/jobs?user=${encodeURIComponent(row.user)}`}>{row.user}</Link> : "—") },
    { key: "namespace", head: t("col.namespace"), width: 84, mono: true, title: (row) => row.namespace, cell: (row) => row.namespace || "—" },
    { key: "pod", head: t("idle.holder"), width: 130, mono: true, fixed: true, title: (row) => row.pod || row.node, cell: (row) => <Owner row={row} /> },
    { key: "node", head: t("col.node"), width: 80, mono: true, cell: (row) => <Link to={`/nodes/${encodeURIComponent(row.node)}`}>{row.node}</Link> },
    { key: "model", head: t("usage.model"), width: 100, title: (row) => row.model, cell: (row) => row.model || "—" },
    { key: "gpus", head: t("idle.gpus"), width: 52, number: true, cell: (row) => gpus(row.gpus) },
    { key: "since", head: t("idle.since"), width: 70, cell: (row) => <Ago at={row.since} /> },
    { key: "gpuHours", head: t("usage.gpuHours"), width: 76, number: true, cell: (row) => heldHours(row.gpuHours) },
    ...(currency ? [{ key: "cost", head: t("usage.cost"), unit: currency, width: 84, number: true, cell: (row: IdleRow) => money(row.cost) }] : []),
    { key: "leaf", head: t("col.quotaPath"), width: 120, mono: true, optional: true, cell: (row) => row.leaf || "—" },
    { key: "advice", head: t("idle.advice"), width: 214, unsortable: true, title: (row) => sentenceWords(row.advice, words), cell: (row) => sentenceWords(row.advice, words) },
  ];
}

function nodeColumns(t: Words["t"], currency: string): Column<NodeGpuMoney>[] {
  const hours = (key: "usedGpuHours" | "idleGpuHours" | "unknownGpuHours" | "freeGpuHours" | "strandedGpuHours" | "brokenGpuHours", part: string, width = 66): Column<NodeGpuMoney> => ({ key, head: partWord(part, t), width, number: true, unsortable: true, cell: (row) => heldHours(row[key]) });
  return [
    { key: "node", head: t("col.node"), width: 90, mono: true, fixed: true, unsortable: true, cell: (row) => <Link to={`/nodes/${encodeURIComponent(row.node)}`}>{row.node}</Link> },
    { key: "model", head: t("usage.model"), width: 100, unsortable: true, cell: (row) => row.model || "—" },
    { key: "split", head: t("idle.parts"), width: 130, drawn: true, unsortable: true, cell: (row) => <SplitBar of={row} label={row.node} isSmall /> },
    { key: "gpuHours", head: t("usage.gpuHours"), width: 76, number: true, unsortable: true, cell: (row) => heldHours(row.gpuHours) },
    hours("usedGpuHours", "used"),
    hours("idleGpuHours", "idle"),
    hours("unknownGpuHours", "unknown", 82),
    hours("freeGpuHours", "free"),
    hours("strandedGpuHours", "stranded", 84),
    hours("brokenGpuHours", "broken", 70),
    ...(currency ? [{ key: "cost", head: t("usage.cost"), unit: currency, width: 86, number: true, unsortable: true, cell: (row: NodeGpuMoney) => money(row.cost) }] : []),
    { key: "lacking", head: t("idle.lacking"), width: 140, unsortable: true, title: (row) => row.holders.join(", "), cell: (row) => (row.lacking === "" ? "" : t("idle.lackingOf", { resource: row.lacking, pods: row.holders.map(shown).join(", ") || count(0) })) },
  ];
}
