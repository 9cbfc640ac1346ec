// The columns of a job's instances. Which cards an instance has and how many are two questions: a card's index is never a count.
import type { Instance } from "../../api/types";
import { count, duration, gpus, memory, percent, UNKNOWN } from "../../format/format";
import type { Words } from "../../i18n/locale";
import { Copied } from "../../parts/Copy";
import { Status } from "../../parts/Status";
import { Link } from "../../router/Link";
import type { Column } from "../../table/columns";
import { whyOf } from "./columns";

export function instanceColumns(words: Pick<Words, "t" | "code">): Column<Instance>[] {
  const { t } = words;
  return [
    { key: "name", head: t("job.instance"), width: 180, mono: true, title: (i) => i.name, cell: (i) => <Copied text={i.name} /> },
    { key: "role", head: t("job.role"), width: 76, cell: (i) => (i.isChief ? <b>{i.role}</b> : i.role) },
    { key: "status", head: t("col.status"), width: 96, title: (i) => whyOf(i.waiting, words), cell: (i) => <Status word={i.status} /> },
    { key: "node", head: t("col.node"), width: 110, mono: true, cell: (i) => (i.node ? <Link to={`/nodes/${encodeURIComponent(i.node)}`}>{i.node}</Link> : UNKNOWN) },
    { key: "cards", head: t("job.cards"), width: 78, number: true, title: (i) => i.gpuUuids.join(", "), cell: (i) => i.gpuIndexes.join(", ") || UNKNOWN },
    { key: "gpus", head: t("job.gpus"), width: 58, number: true, cell: (i) => gpus(i.gpus) },
    { key: "util", head: t("col.utilization"), width: 86, number: true, bar: (i) => (i.gpuUtilPercent === null ? null : i.gpuUtilPercent / 100), cell: (i) => percent(i.gpuUtilPercent) },
    { key: "granted", head: t("col.jobMemoryAllocated"), width: 92, number: true, cell: (i) => memory(i.gpuMemoryAllocatedMiB) },
    { key: "memory", head: t("col.memoryUsed"), width: 92, number: true, cell: (i) => memory(i.gpuMemoryUsedMiB) },
    { key: "restarts", head: t("job.restarts"), width: 66, number: true, cell: (i) => count(i.restarts) },
    { key: "age", head: t("job.age"), width: 76, number: true, cell: (i) => duration(i.ageSeconds) },
    { key: "ip", head: t("col.ip"), width: 100, mono: true, cell: (i) => i.ip || UNKNOWN },
  ];
}
