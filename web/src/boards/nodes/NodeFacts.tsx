// Everything about one node: its cards, who is on them, its conditions. The same in the side panel and on the full page.
import { useNode } from "../../api/queries";
import type { GpuRow, NodeDetail } from "../../api/types";
import { gpus, memory, memoryFraction, percent, share, UNKNOWN } from "../../format/format";
import { useWords, type Words } from "../../i18n/locale";
import { isMessageKey } from "../../i18n/translate";
import { Ago } from "../../parts/Ago";
import { Status, toneOf } from "../../parts/Status";
import { Answered, Bones } from "../../parts/States";
import { Link } from "../../router/Link";
import type { Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { modeWord } from "./columns";

export function NodeFacts({ name, wide }: { name: string; wide?: boolean }) {
  const asked = useNode(name);
  return (
    <Answered asked={asked} bones={<Bones lines={8} />}>
      {(detail) => (
        <>
          <Summary detail={detail} wide={Boolean(wide)} />
          <Cards detail={detail} />
          <Pods detail={detail} />
          <Conditions detail={detail} />
          <Labels detail={detail} />
        </>
      )}
    </Answered>
  );
}

function Summary({ detail, wide }: { detail: NodeDetail; wide: boolean }) {
  const { t } = useWords();
  const n = detail.node;
  return (
    <dl className={`facts num ${wide ? "wide" : ""}`}>
      <dt>{t("col.status")}</dt>
      <dd>
        <Status word={n.status} suffix={n.schedulable ? "" : ` · ${t("status.cordoned")}`} />
      </dd>
      <dt>{t("col.gpuModel")}</dt>
      <dd>
        {n.gpuModel || UNKNOWN} <span className="dim">{modeWord(n.gpuMode, t)}</span>
      </dd>
      <dt>{t("col.gpusAllocated")}</dt>
      <dd>
        {gpus(n.gpusAllocated)} / {gpus(n.gpusTotal)}
      </dd>
      <dt>{t("col.memoryUsed")}</dt>
      <dd>{memoryFraction(n.gpuMemoryUsedMiB, n.gpuMemoryTotalMiB)}</dd>
      <dt>{t("col.ip")}</dt>
      <dd className="mono">{n.ip || UNKNOWN}</dd>
      <dt>{t("col.utilization")}</dt>
      <dd>{percent(n.gpuUtilPercent)}</dd>
      <dt>{t("col.driver")}</dt>
      <dd>{n.driverVersion || UNKNOWN}</dd>
      <dt>kubelet</dt>
      <dd>{[detail.kubeletVersion, detail.runtimeVersion, detail.osImage].filter(Boolean).join(" · ") || UNKNOWN}</dd>
      <dt>{t("col.created")}</dt>
      <dd>
        <Ago at={n.createdAt} />
      </dd>
      <dt>{t("node.size")}</dt>
      <dd>
        {n.cpuTotalCores} {t("unit.cores")} · {memory(n.memoryTotalMiB)}
      </dd>
    </dl>
  );
}

function Cards({ detail }: { detail: NodeDetail }) {
  const { t } = useWords();
  if (detail.gpus.length === 0) return null;
  const columns: Column<GpuRow>[] = [
    { key: "index", head: "GPU", width: 44, number: true, cell: (g) => g.index },
    { key: "health", head: t("node.health"), width: 124, cell: (g) => <Health gpu={g} /> },
    { key: "util", head: t("col.utilization"), width: 86, number: true, bar: (g) => (g.utilPercent === null ? null : g.utilPercent / 100), cell: (g) => percent(g.utilPercent) },
    { key: "memory", head: t("col.memoryUsed"), width: 132, number: true, bar: (g) => ratioOf(g.memoryUsedMiB, g.memoryTotalMiB), cell: (g) => memoryFraction(g.memoryUsedMiB, g.memoryTotalMiB) },
    { key: "temperature", head: "°C", width: 42, number: true, cell: (g) => (g.temperatureC === null ? UNKNOWN : Math.round(g.temperatureC)) },
    { key: "power", head: "W", width: 44, number: true, cell: (g) => (g.powerW === null ? UNKNOWN : Math.round(g.powerW)) },
    { key: "pods", head: t("node.heldBy"), width: 160, mono: true, cell: (g) => <HeldBy gpu={g} /> },
  ];
  return (
    <section className="section">
      <h2>{t("node.cards")}</h2>
      <div className="nested">
        <DataTable name="node-gpus" caption={t("node.cards")} columns={columns} rows={detail.gpus} rowKey={(g) => String(g.index)} />
      </div>
    </section>
  );
}

const ratioOf = (part: number | null, total: number | null): number | null => {
  const of100 = share(part, total);
  return of100 === null ? null : of100 / 100;
};

function Health({ gpu }: { gpu: GpuRow }) {
  const { t } = useWords();
  const why = gpu.reason || (gpu.lastXid ? `XID ${gpu.lastXid.code}` : "");
  if (toneOf(gpu.health) !== "good") return <span title={why}><Status word={gpu.health} suffix={why ? ` · ${why}` : ""} /></span>;
  const flag = gpu.flags.map((f) => flagWord(f, t)).join(", ");
  return flag ? <span className="flag">{flag}</span> : <Status word={gpu.health} />;
}

function flagWord(flag: string, t: Words["t"]): string {
  const key = `flag.${flag}`;
  return isMessageKey(key) ? t(key) : flag;
}

function HeldBy({ gpu }: { gpu: GpuRow }) {
  if (gpu.pods.length === 0) return UNKNOWN;
  const names = gpu.pods.map((p) => `${p.namespace}/${p.name}`).join(", ");
  return <span title={names}>{names}</span>;
}

function Pods({ detail }: { detail: NodeDetail }) {
  const { t } = useWords();
  if (detail.pods.length === 0) return null;
  const columns: Column<NodeDetail["pods"][number]>[] = [
    { key: "name", head: t("node.pod"), width: 200, mono: true, cell: (p) => <span title={`${p.namespace}/${p.name}`}>{`${p.namespace}/${p.name}`}</span> },
    { key: "job", head: t("col.jobName"), width: 120, mono: true, cell: (p) => (p.job ? <Link to={`/jobs/${p.namespace}/${p.job}`}>{p.job.split("/").at(-1)}</Link> : UNKNOWN) },
    { key: "phase", head: t("col.status"), width: 90, cell: (p) => <Status word={p.phase} /> },
    { key: "gpus", head: t("node.gpus"), width: 52, number: true, cell: (p) => gpus(p.gpus) },
    { key: "memory", head: t("col.memoryAllocated"), width: 94, number: true, cell: (p) => memory(p.gpuMemoryAllocatedMiB) },
    { key: "since", head: t("node.since"), width: 76, cell: (p) => <Ago at={p.createdAt} /> },
  ];
  return (
    <section className="section">
      <h2>{t("node.pods")}</h2>
      <div className="nested">
        <DataTable name="node-pods" caption={t("node.pods")} columns={columns} rows={detail.pods} rowKey={(p) => `${p.namespace}/${p.name}`} maxRows={10} />
      </div>
    </section>
  );
}

function Conditions({ detail }: { detail: NodeDetail }) {
  const { t } = useWords();
  if (detail.conditions.length === 0) return null;
  const columns: Column<NodeDetail["conditions"][number]>[] = [
    { key: "type", head: t("node.condition"), width: 140, cell: (c) => c.type },
    { key: "status", head: t("col.status"), width: 80, cell: (c) => c.status },
    { key: "message", head: t("node.message"), width: 260, cell: (c) => <span title={c.message}>{[c.reason, c.message].filter(Boolean).join(": ")}</span> },
    { key: "at", head: t("node.since"), width: 84, cell: (c) => <Ago at={c.at} /> },
  ];
  return (
    <section className="section">
      <h2>{t("node.conditions")}</h2>
      <div className="nested">
        <DataTable name="node-conditions" caption={t("node.conditions")} columns={columns} rows={detail.conditions} rowKey={(c) => c.type} />
      </div>
    </section>
  );
}

function Labels({ detail }: { detail: NodeDetail }) {
  const { t } = useWords();
  return (
    <>
      {detail.taints.length > 0 && (
        <section className="section">
          <h2>{t("node.taints")}</h2>
          <div className="labels mono">
            {detail.taints.map((taint) => (
              <span key={`${taint.key} ${taint.effect}`}>{`${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect}`}</span>
            ))}
          </div>
        </section>
      )}
      <section className="section">
        <h2>{t("node.labels")}</h2>
        <div className="labels mono">
          {Object.entries(detail.labels).map(([key, value]) => (
            <span key={key}>{`${key}=${value}`}</span>
          ))}
        </div>
      </section>
    </>
  );
}
