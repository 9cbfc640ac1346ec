// Everything about one node: its cards, who is on them, its conditions. The same in the side panel and on the full page.
import { useNode } from "../../api/queries";
import type { NodeDetail } from "../../api/types";
import { count, gpus, memory, memoryFraction, percent, UNKNOWN } from "../../format/format";
import { useWords, type Words } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { Gone } from "../../parts/Gone";
import { Answered, Bones } from "../../parts/States";
import { Status } from "../../parts/Status";
import { isolationWord, modesOf } from "./columns";
import { Cards, NoCards, Pods } from "./NodeCards";
import { Held } from "./NodeHeld";
import { Conditions, Labels, NodeEvents } from "./NodeMore";

export function NodeFacts({ name, wide = false }: { name: string; wide?: boolean }) {
  const asked = useNode(name);
  return (
    <Answered asked={asked} bones={<Bones lines={8} />}>
      {(detail) => (
        <>
          {!wide && <Gone asked={asked} kind="node" />}
          <Notices detail={detail} />
          <Summary detail={detail} wide={wide} />
          {wide ? (
            <HeldOrNone detail={detail} />
          ) : (
            <>
              <Cards detail={detail} />
              <Pods detail={detail} />
            </>
          )}
          <NodeEvents detail={detail} wide={wide} />
          <Conditions detail={detail} />
          <Labels detail={detail} />
        </>
      )}
    </Answered>
  );
}

const HeldOrNone = ({ detail }: { detail: NodeDetail }) => (detail.gpus.length === 0 && detail.pods.length === 0 ? <NoCards /> : <Held detail={detail} />);

/** Notices to read before the numbers. The gravest first. */
export function noticesOf({ node, sharing }: Pick<NodeDetail, "node" | "sharing">, t: Words["t"]): readonly [code: string, text: string][] {
  const notices: ([string, string] | false)[] = [
    node.gpuUnitsOvercommitted > 0 && ["overcommitted", t("notice.overcommitted", { n: node.gpuUnitsOvercommitted })],
    node.gpusDraining > 0 && ["draining", t("notice.draining", { n: node.gpusDraining })],
    node.gpuUnitsPending > 0 && ["pending", t("notice.pending", { n: node.gpuUnitsPending })],
    Boolean(sharing?.conflict) && ["conflict", t("notice.conflict", { conflict: sharing?.conflict })],
    sharing !== null && !sharing.offers && !sharing.conflict && ["closed", t("notice.closed")],
  ];
  return notices.filter((notice) => notice !== false);
}

function Notices({ detail }: { detail: NodeDetail }) {
  const { t } = useWords();
  return noticesOf(detail, t).map(([code, text]) => (
    <div key={code} className={`banner ${code === "overcommitted" ? "broken" : ""}`} role="status" data-testid={`notice-${code}`}>
      {text}
    </div>
  ));
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
        {n.gpuModel || UNKNOWN} <span className="dim">{modesOf(n, t)}</span>
      </dd>
      <dt>{t("col.gpusAllocated")}</dt>
      <dd>
        {gpus(n.gpusAllocated)} / {gpus(n.gpusTotal)}
      </dd>
      {n.gpuUnitsTotal > 0 && (
        <>
          <dt>{t("node.sharing")}</dt>
          <dd data-testid="node-sharing">
            {t("node.sharingLine", { units: count(n.gpuUnitsAllocated), total: count(n.gpuUnitsTotal), unit: n.gpuUnit, free: count(detail.sharing?.largestFree) })} {detail.sharing?.placement && <span className="dim">{detail.sharing.placement}</span>}
          </dd>
          <dt>{t("col.isolation")}</dt>
          <dd>{isolationWord(n.isolation, t)}</dd>
        </>
      )}
      <dt>{t("col.memoryAllocated")}</dt>
      <dd>{memoryFraction(n.gpuMemoryAllocatedMiB, n.gpuMemoryTotalMiB)}</dd>
      <dt>{t("col.memoryUsed")}</dt>
      <dd>{memoryFraction(n.gpuMemoryUsedMiB, n.gpuMemoryUsedOfMiB)}</dd>
      <dt>{t("col.ip")}</dt>
      <dd className="mono">{n.ip || UNKNOWN}</dd>
      <dt>{t("col.nodeUtilization")}</dt>
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
