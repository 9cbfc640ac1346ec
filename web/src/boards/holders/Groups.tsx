// Holders together: a group unfolds in place, and its pods are asked for only then.
import { useMemo } from "react";
import { useHoldersOf } from "../../api/queries";
import type { Holder, HolderGroupList } from "../../api/types";
import { count, duration, gpus, memoryInGib } from "../../format/format";
import { useWords, type Words } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { Link } from "../../router/Link";
import { navigate } from "../../router/router";
import { useQueryState } from "../../router/usequery";
import type { Column } from "../../table/columns";
import type { Kept } from "../../table/useKept";
import { groupColumns, groupKey, holderKey, idleOf, part } from "./columns";
import { filtersOf, type Line, lineKey, linesOf, PODS_MAX, toggled } from "./lines";
import { FILTERS, Rows } from "./Rows";

export function Groups({ asked, asking, by }: { asked: Kept<HolderGroupList>; asking: URLSearchParams; by: string }) {
  const { t } = useWords();
  const [params, set] = useQueryState();
  const unfolded = params.getAll("unfold");
  const groups = asked.data?.items ?? [];
  const open = groups.filter((group) => unfolded.includes(groupKey(group)));
  const answers = useHoldersOf(open.map((group) => new URLSearchParams([...filtersOf(by, group, asking, FILTERS), ["size", String(PODS_MAX)]])));
  const belowOf = new Map(open.map((group, at) => [groupKey(group), { pods: answers[at]?.data?.items, total: answers[at]?.data?.total, error: answers[at]?.error ?? null }]));
  const pageOf = (line: Line) => `/gpus?${filtersOf(by, line.group, asking, FILTERS)}`;
  const isOpen = (line: Line) => (line.is === "group" ? belowOf.has(groupKey(line.group)) : undefined);
  const fold = (line: Line, isToOpen: boolean) => set({ unfold: toggled(unfolded, groupKey(line.group), isToOpen) }, "replace");
  const onOpen = (line: Line) => {
    if (line.is === "group") fold(line, !isOpen(line));
    else if (line.is === "pod") navigate(`${pageOf(line)}&open=${encodeURIComponent(holderKey(line.pod))}`);
    else if (line.is === "all") navigate(pageOf(line));
  };
  const columns = useMemo(() => groupColumns(by, t).map((column) => lineColumn(column, by, t)), [by, t]);
  const shown = columns.map((column): Column<Line> => (column.key === "name" ? { ...column, cell: (line) => (line.is === "all" ? <All line={line} to={pageOf(line)} /> : column.cell(line)) } : column));
  return (
    <Rows<Line>
      name={`holders-${by}`}
      path="/holders/groups"
      command="groups"
      asked={{ ...asked, data: asked.data && { items: linesOf(groups, belowOf), total: asked.data.total } }}
      asking={asking}
      columns={shown}
      rowKey={lineKey}
      onOpen={onOpen}
      tree={{ levelOf: (line) => (line.is === "group" ? 1 : 2), isOpen, onFold: fold }}
    />
  );
}

const INDENT = "\u2003";

function All({ line, to }: { line: Line & { is: "all" }; to: string }) {
  const { t } = useWords();
  const words = line.shown < line.total ? t("holders.firstOf", { n: count(line.shown), total: count(line.total) }) : t("holders.allOf");
  return (
    <>
      {INDENT}
      <Link to={to}>{words}</Link>
    </>
  );
}

function lineColumn(column: ReturnType<typeof groupColumns>[number], by: string, t: Words["t"]): Column<Line> {
  const { title, bar, cell, ...rest } = column;
  return {
    ...rest,
    title: (line) => (line.is === "group" ? (title?.(line.group) ?? "") : column.key === "name" && line.is === "pod" ? `${holderKey(line.pod)} · ${line.pod.node}` : ""),
    bar: (line) => (line.is === "group" ? (bar?.(line.group) ?? null) : line.is === "pod" && column.key === "gpuMemoryUsedMiB" ? part(line.pod.gpuMemoryUsedMiB, line.pod.gpuMemoryUsedOfMiB) : null),
    cell: (line) => {
      if (line.is === "group") return cell(line.group);
      if (line.is === "pod") return podCell(line.pod, column.key, by, t);
      if (column.key !== "name") return "";
      return INDENT + (line.is === "failed" ? `${t("holders.podsFailed")} ${line.error.message}` : t("state.loading"));
    },
  };
}

/** Of one pod under the heads of its group; what is only a sum stays empty. */
function podCell(pod: Holder, key: string, by: string, t: Words["t"]): React.ReactNode {
  switch (key) {
    case "name":
      return INDENT + (by === "owner" || by === "namespace" ? pod.name : holderKey(pod));
    case "gpus":
      return gpus(pod.gpus);
    case "gpusIdle":
      return pod.idleSeconds ? t("holders.idleFor", { time: duration(pod.idleSeconds) }) : idleOf(pod, t);
    case "gpuMemoryAllocatedMiB":
      return memoryInGib(pod.gpuMemoryAllocatedMiB);
    case "gpuMemoryUsedMiB":
      return memoryInGib(pod.gpuMemoryUsedMiB);
    case "heldSince":
      return <Ago at={pod.heldSince} />;
    default:
      return "";
  }
}
