// The Nodes board: the map, the table of document 000, its six charts; `gpu_node` and `GPU` filter all three.
import { useMemo } from "react";
import { useGpus, useNodeNames, useNodes } from "../../api/queries";
import type { NodeList, NodeRow } from "../../api/types";
import { ChartPageProvider } from "../../charts/page";
import { count } from "../../format/format";
import { GpuMap } from "../../gpumap/GpuMap";
import { Command } from "../../parts/Copy";
import { useWords } from "../../i18n/locale";
import { useAt } from "../../past/at";
import { PastBar } from "../../past/PastBar";
import { PageHead } from "../../parts/PageHead";
import { SidePanel } from "../../parts/SidePanel";
import { Empty, FailedRefresh, Warnings } from "../../parts/States";
import { listQuery, pick } from "../../router/query";
import { useQueryState } from "../../router/usequery";
import { Choice, SearchFilter } from "../../table/Filters";
import { type Kept, useKept } from "../../table/useKept";
import { useTyped } from "../../table/useTyped";
import { ListTable } from "../../table/ListTable";
import { modeWord, nodeColumns } from "./columns";
import { CHART_NODES_MAX, chartFilters, focusOf, mustAsk, uuidsQuery } from "./focus";
import { NodeCharts } from "./NodeCharts";
import { NodeFacts } from "./NodeFacts";

const FILTERS = ["gpu_node", "GPU", "status", "mode", "model", "q"] as const;
const NOTHING = new URLSearchParams();
const ASKED = [...FILTERS, "sort", "at"] as const;

export function NodesBoard() {
  const { t } = useWords();
  const at = useAt();
  const [params, set] = useQueryState();
  const asking = useMemo(() => listQuery(params, ASKED), [params]);
  const asked = useKept(useNodes(asking), asking);
  const facets = asked.data?.facets;
  const [naming, isNaming, onNode] = useTyped();
  const found = useNodes(naming, isNaming).data?.items.filter((n) => n.gpusTotal > 0).map((n) => n.name) ?? [];
  const open = params.get("open");
  const asksNames = mustAsk(asking);
  const names = useNodeNames(asksNames ? pick(params, FILTERS) : null).data;
  const matching = asksNames ? (names ?? null) : null;
  const meant = pick(params, FILTERS).toString();
  const byUuid = uuidsQuery(params);
  const named = useGpus(byUuid ?? NOTHING, byUuid !== null).data?.items;
  const cards = byUuid ? named : undefined;
  const focus = useMemo(() => focusOf(new URLSearchParams(meant), matching, cards), [meant, matching, cards]);
  const charted = useMemo(() => chartFilters(new URLSearchParams(meant), matching), [meant, matching]);
  return (
    <ChartPageProvider fallback="30m">
      <main className="page" data-testid="page-nodes">
        <PageHead title={t("title.nodes")} answer={asked.data} at={at} onRefresh={() => void asked.refetch()} />
        {at && <PastBar />}
        <div className="filters">
          <Choice name="gpu_node" choices={[...(facets?.["gpu_node"] ?? []), ...found]} onSearch={onNode} params={params} set={set} width={150} />
          <Choice name="GPU" choices={facets?.["GPU"] ?? []} params={params} set={set} width={100} />
          <Choice name="status" label={t("col.status")} choices={facets?.["status"] ?? []} params={params} set={set} width={116} />
          <Choice name="mode" label={t("col.gpuMode")} choices={facets?.["mode"] ?? []} nameOf={(m) => modeWord(m, t)} params={params} set={set} width={138} />
          <Choice name="model" label={t("col.gpuModel")} choices={facets?.["model"] ?? []} params={params} set={set} width={138} />
          <div className="end">
            <SearchFilter params={params} set={set} placeholder={t("nodes.search")} />
          </div>
        </div>
        <Warnings of={[asked.data?.warnings]} />
        <FailedRefresh asked={[asked]} />
        <GpuMap heightMax={300} heightMany={410} focus={focus} />
        <NodeTable asked={asked} asking={asked.shown} open={open} onOpen={(node) => set({ open: node.name }, open ? "replace" : "push")} />
        {matching && matching.length > CHART_NODES_MAX && <div className="banner quiet">{t("nodes.chartsWhole", { n: count(matching.length) })}</div>}
        {!at && charted && (matching !== null || !asksNames) && <NodeCharts filters={charted} />}
        {open && (
          <SidePanel name={open} of={{ kind: "node", name: open }} page={`/nodes/${encodeURIComponent(open)}`} onClose={() => set({ open: null })}>
            <NodeFacts name={open} />
          </SidePanel>
        )}
      </main>
    </ChartPageProvider>
  );
}

function NodeTable({ asked, asking, open, onOpen }: { asked: Kept<NodeList>; asking: URLSearchParams; open: string | null; onOpen: (node: NodeRow) => void }) {
  const { t } = useWords();
  const drains = asked.data?.items.some((node) => node.gpusDraining > 0) ?? false;
  const columns = useMemo(() => nodeColumns(t, drains), [t, drains]);
  const none = (
    <Empty why={t("nodes.none")}>
      {t("nodes.noneNext")} <Command text="fairlead up" />
    </Empty>
  );
  return (
    <ListTable<NodeRow>
      name="nodes"
      slug="gpu-node-details"
      title={t("panel.nodeDetails")}
      path="/nodes"
      command="nodes"
      asked={asked}
      asking={asking}
      filters={FILTERS}
      columns={columns}
      rowKey={(n) => n.name}
      selected={open}
      onOpen={onOpen}
      noneMatch={t("nodes.noneMatch")}
      none={none}
    />
  );
}
