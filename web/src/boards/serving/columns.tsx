// The columns of the serving jobs and of their pods, as `arena serve list` and `arena serve get` have them.
import type { ServingPod, ServingJob } from "../../api/types";
import { count, gpus, UNKNOWN } from "../../format/format";
import type { Words } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { Status } from "../../parts/Status";
import { Link } from "../../router/Link";
import type { Column } from "../../table/columns";
import { besideOf, whyOf } from "../jobs/columns";

export const servingKey = (job: Pick<ServingJob, "namespace" | "type" | "name" | "version">): string => [job.namespace, job.type, job.name, job.version].join("/");

export const podsOf = (job: Pick<ServingJob, "available" | "desired">): string => `${count(job.available)} / ${count(job.desired)}`;

export function servingColumns(words: Pick<Words, "t" | "code">): Column<ServingJob>[] {
  const { t } = words;
  return [
    { key: "namespace", head: t("col.namespace"), width: 104, mono: true, title: (s) => s.namespace, cell: (s) => s.namespace },
    { key: "name", head: t("serving.name"), width: 150, mono: true, fixed: true, title: (s) => s.name, cell: (s) => s.name },
    { key: "type", head: t("serving.type"), width: 92, cell: (s) => s.type },
    { key: "version", head: t("serving.version"), width: 120, mono: true, title: (s) => s.version, cell: (s) => s.version || UNKNOWN },
    { key: "status", head: t("col.status"), width: 290, title: (s) => whyOf(s.waiting, words), cell: (s) => <Status word={s.status} suffix={besideOf(s.waiting, words)} /> },
    { key: "available", head: t("serving.pods"), width: 90, number: true, cell: podsOf },
    { key: "gpus", head: "GPUs", width: 56, number: true, cell: (s) => gpus(s.gpus) },
    { key: "address", head: t("serving.address"), width: 150, mono: true, title: (s) => s.address, cell: (s) => s.address || UNKNOWN },
    { key: "ports", head: t("serving.ports"), width: 130, mono: true, unsortable: true, title: (s) => s.ports.join(", "), cell: (s) => s.ports.join(", ") || UNKNOWN },
    { key: "user", head: t("col.user"), width: 84, optional: true, title: (s) => s.user, cell: (s) => s.user || UNKNOWN },
    { key: "createdAt", head: t("col.created"), width: 84, cell: (s) => <Ago at={s.createdAt} /> },
  ];
}

export function instanceColumns(namespace: string, t: Words["t"]): Column<ServingPod>[] {
  const name = (i: ServingPod) => (i.gpus > 0 ? <Link to={`/gpus?open=${encodeURIComponent(`${namespace}/${i.name}`)}`}>{i.name}</Link> : i.name);
  return [
    { key: "name", head: t("holders.pod"), width: 200, mono: true, title: (i) => i.name, cell: name },
    { key: "status", head: t("col.status"), width: 92, cell: (i) => <Status word={i.status} /> },
    { key: "node", head: t("col.node"), width: 92, mono: true, title: (i) => i.node, cell: (i) => (i.node ? <Link to={`/nodes/${encodeURIComponent(i.node)}`}>{i.node}</Link> : UNKNOWN) },
    { key: "ready", head: t("serving.containers"), width: 88, number: true, cell: (i) => `${count(i.ready)} / ${count(i.containers)}` },
    { key: "restarts", head: t("job.restarts"), width: 74, number: true, cell: (i) => count(i.restarts) },
    { key: "gpus", head: "GPUs", width: 56, number: true, cell: (i) => gpus(i.gpus) },
    { key: "age", head: t("job.age"), width: 66, cell: (i) => <Ago at={i.createdAt} /> },
  ];
}
