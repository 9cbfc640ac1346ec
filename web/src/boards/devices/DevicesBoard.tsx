// Every card of the cluster: what it is, who has it, how it feels; the charts of the DCGM board below.
import { useMemo } from "react";
import { useGpus, useNodes } from "../../api/queries";
import type { GpuList, ListedGpu } from "../../api/types";
import { ChartGrid, chartsOf, type NamedCharts } from "../../charts/ChartGrid";
import { OfPage } from "../../charts/OfPage";
import { ChartPageProvider } from "../../charts/page";
import { useWords } from "../../i18n/locale";
import { Command } from "../../parts/Copy";
import { PageHead } from "../../parts/PageHead";
import { Empty, FailedRefresh, Warnings } from "../../parts/States";
import { listQuery } from "../../router/query";
import { navigate } from "../../router/router";
import { useQueryState } from "../../router/usequery";
import { Choice, SearchFilter } from "../../table/Filters";
import { ListTable } from "../../table/ListTable";
import { type Kept, useKept } from "../../table/useKept";
import { useTyped } from "../../table/useTyped";
import { modeWord } from "../nodes/columns";
import { charted } from "./charted";
import { deviceColumns, stateWord } from "./columns";

const FILTERS = ["gpu_node", "GPU", "status", "mode", "model", "q"] as const;
const ASKED = [...FILTERS, "sort"] as const;
const CHARTS: NamedCharts = [
  ["gpu-duty-cycle", "panel.dutyCycle", "gpu-duty-cycle"],
  ["gpu-memory-usage", "panel.memoryUsage", "gpu-memory-used"],
  ["gpu-memory-usage-percentage", "panel.memoryUsagePercent", "gpu-memory-used-percent"],
  ["gpu-temperature", "panel.temperature", "gpu-temperature"],
  ["gpu-power", "panel.power", "gpu-power"],
  ["gpu-sm-clocks", "panel.smClocks", "gpu-sm-clock"],
  ["tensor-core-utilization", "panel.tensor", "gpu-tensor-active"],
  ["pcie", "panel.pcie", "gpu-pcie"],
  ["nvlink", "panel.nvlink", "gpu-nvlink"],
  ["clocks-held-down", "panel.heldDown", "gpu-held-down"],
  ["xid-errors", "panel.xid", "gpu-xid-errors"],
  ["ecc-errors", "panel.ecc", "gpu-ecc-errors"],
  ["remapped-rows", "panel.remapped", "gpu-remapped-rows"],
];

export function DevicesBoard() {
  const { t } = useWords();
  const [params, set] = useQueryState();
  const asking = useMemo(() => listQuery(params, ASKED), [params]);
  const asked = useKept(useGpus(asking), asking);
  const facets = asked.data?.facets;
  const [naming, isNaming, onNode] = useTyped();
  const found = useNodes(naming, isNaming).data?.items.filter((node) => node.gpusTotal > 0).map((node) => node.name) ?? [];
  const rows = asked.data?.items;
  const shown = useMemo(() => charted(asked.shown, rows ?? []), [asked.shown, rows]);
  const filters = shown.filters.toString();
  const charts = useMemo(() => chartsOf(CHARTS, new URLSearchParams(filters)), [filters]);
  return (
    <ChartPageProvider fallback="30m">
      <main className="page" data-testid="page-devices">
        <PageHead title={t("title.devices")} answer={asked.data} onRefresh={() => void asked.refetch()} />
        <div className="filters">
          <Choice name="gpu_node" choices={[...(facets?.["gpu_node"] ?? []), ...found]} onSearch={onNode} params={params} set={set} width={150} />
          <Choice name="GPU" choices={facets?.["GPU"] ?? []} params={params} set={set} width={100} />
          <Choice name="status" label={t("map.state")} choices={facets?.["status"] ?? []} nameOf={(word) => stateWord(word, t)} params={params} set={set} width={116} />
          <Choice name="mode" label={t("col.gpuMode")} choices={facets?.["mode"] ?? []} nameOf={(word) => modeWord(word, t)} params={params} set={set} width={138} />
          <Choice name="model" label={t("col.gpuModel")} choices={facets?.["model"] ?? []} params={params} set={set} width={138} />
          <div className="end">
            <SearchFilter params={params} set={set} placeholder={t("devices.search")} />
          </div>
        </div>
        <Warnings of={[asked.data?.warnings]} />
        <FailedRefresh asked={[asked]} />
        <DeviceTable asked={asked} asking={asked.shown} />
        {asked.data && <OfPage charted={shown} total={asked.data.total} />}
        {rows && rows.length > 0 && <ChartGrid charts={charts} />}
      </main>
    </ChartPageProvider>
  );
}

function DeviceTable({ asked, asking }: { asked: Kept<GpuList>; asking: URLSearchParams }) {
  const { t } = useWords();
  const columns = useMemo(() => deviceColumns(t), [t]);
  const none = (
    <Empty why={t("devices.none")}>
      {t("nodes.noneNext")} <Command text="fairlead up" />
    </Empty>
  );
  return (
    <ListTable<ListedGpu>
      name="devices"
      slug="gpu-devices"
      title={t("title.devices")}
      path="/gpus"
      command="devices"
      asked={asked}
      asking={asking}
      filters={FILTERS}
      columns={columns}
      rowKey={(gpu) => gpu.uuid || `${gpu.node}/${gpu.index}`}
      selected={null}
      onOpen={(gpu) => navigate(`/nodes/${encodeURIComponent(gpu.node)}`)}
      noneMatch={t("devices.noneMatch")}
      none={none}
    />
  );
}
