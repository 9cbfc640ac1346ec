// The map as a table: the same cells, one row each, for those who read rather than look.
import { percent, duration, UNKNOWN } from "../format/format";
import { useWords } from "../i18n/locale";
import { navigate } from "../router/router";
import type { Column } from "../table/columns";
import { DataTable } from "../table/DataTable";
import type { Cell, GpuMapData } from "./cells";

export function MapTable({ map }: { map: GpuMapData }) {
  const { t } = useWords();
  const nameOf = (cell: Cell) => map.nodes[cell.node]?.name ?? "";
  const columns: Column<Cell>[] = [
    { key: "node", head: t("col.node"), width: 150, mono: true, cell: nameOf },
    { key: "index", head: "GPU", width: 60, number: true, cell: (c) => c.index },
    { key: "model", head: t("col.gpuModel"), width: 190, cell: (c) => map.models[map.nodes[c.node]?.model ?? 0] ?? UNKNOWN },
    { key: "state", head: t("map.state"), width: 100, cell: (c) => t(`map.state.${c.state}`) },
    { key: "util", head: t("map.by.util"), width: 92, number: true, cell: (c) => percent(c.util) },
    { key: "memory", head: t("map.by.memory"), width: 92, number: true, cell: (c) => percent(c.memory) },
    { key: "celsius", head: t("map.by.temperature"), unit: "°C", width: 100, number: true, cell: (c) => (c.celsius === null ? UNKNOWN : Math.round(c.celsius)) },
    { key: "idle", head: t("map.by.idle"), width: 90, number: true, cell: (c) => (c.idleSeconds ? duration(c.idleSeconds) : UNKNOWN) },
    { key: "teams", head: t("map.by.team"), width: 200, mono: true, cell: (c) => c.slices.map(([team]) => map.teams[team]).join(", ") || UNKNOWN },
  ];
  return (
    <DataTable
      name="gpu-map"
      caption={t("map.title")}
      columns={columns}
      rows={map.cells}
      rowKey={(c) => `${nameOf(c)}/${c.index}`}
      maxRows={12}
      onOpen={(c) => navigate(`/nodes/${encodeURIComponent(nameOf(c))}`)}
    />
  );
}
