// One holder: what it holds, its owner and user, and commands for it.
import type { Holder } from "../../api/types";
import { duration, gpus, memory, percent, UNKNOWN } from "../../format/format";
import { useWords } from "../../i18n/locale";
import { catalogues, fill } from "../../i18n/translate";
import { Ago } from "../../parts/Ago";
import { Copy } from "../../parts/Copy";
import { Status } from "../../parts/Status";
import { Link } from "../../router/Link";
import { idleOf, jobPage } from "./columns";
import { releaseCommand } from "./release";

const IDLE_SECONDS = 3600;

export function HolderFacts({ holder: h }: { holder: Holder }) {
  const { t, locale } = useWords();
  const job = jobPage(h);
  const idle = h.idleSeconds !== null && h.idleSeconds >= IDLE_SECONDS ? h.idleSeconds : null;
  const cards = h.gpuIndexes.length > 0 ? `GPU ${h.gpuIndexes.join(", ")}` : t("holders.someCard");
  const note = fill(catalogues[locale]["holders.noteText"], { pod: `${h.namespace}/${h.name}`, gpus: gpus(h.gpus), where: `${h.node}, ${cards}`, idle: duration(idle), command: releaseCommand(h) }, String);
  const facts: readonly (readonly [string, React.ReactNode])[] = [
    [t("col.status"), <Status key="status" word={h.status} />],
    [t("holders.owner"), job ? <Link key="job" to={job}>{`${h.ownerKind}/${h.owner}`}</Link> : h.owner ? `${h.ownerKind}/${h.owner}` : t("holders.nobody")],
    [t("col.user"), h.user || UNKNOWN],
    [t("col.quotaPath"), h.quotaPath ? <Link key="leaf" to={`/quota?path=${encodeURIComponent(h.quotaPath)}`}>{h.quotaPath}</Link> : UNKNOWN],
    [t("col.node"), <Link key="node" to={`/nodes/${encodeURIComponent(h.node)}`}>{`${h.node} · ${cards}`}</Link>],
    ["GPUs", gpus(h.gpus)],
    [t("col.memoryAllocated"), memory(h.gpuMemoryAllocatedMiB)],
    [t("col.memoryUsed"), memory(h.gpuMemoryUsedMiB)],
    [t("col.utilization"), percent(h.gpuUtilPercent)],
    [t("node.since"), <Ago key="since" at={h.heldSince} />],
    [t("map.by.idle"), idleOf(h, t)],
  ];
  return (
    <>
      <dl className="facts">
        {facts.map(([word, fact]) => (
          <div className="fact" key={word}>
            <dt>{word}</dt>
            <dd>{fact}</dd>
          </div>
        ))}
      </dl>
      {idle !== null && (
        <section className="section" data-testid="idle-note">
          <h3>{t("holders.note")}</h3>
          <p className="note-text">
            <span>{note}</span>
            <Copy text={note} label={t("holders.copyNote")} />
          </p>
        </section>
      )}
    </>
  );
}
