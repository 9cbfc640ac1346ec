// What needs a look: broken cards, leaves below their guarantee, warnings. Each names the thing and leads there.
import type { FaultyGpu, RecentWarning, StarvedLeaf } from "../../api/types";
import { amount, amountUnit, count } from "../../format/format";
import { useWords } from "../../i18n/locale";
import { unitWord } from "../../i18n/units";
import { Ago } from "../../parts/Ago";
import { Panel } from "../../parts/Panel";
import { Empty } from "../../parts/States";
import { Link } from "../../router/Link";

const SHOWN = 8;

export function FaultyGpus({ gpus, className }: { gpus: readonly FaultyGpu[]; className: string }) {
  const { t } = useWords();
  return (
    <Panel slug="faulty-gpus" title={t("overview.faulty")} note={gpus.length > 0 ? count(gpus.length) : undefined} className={className} flush>
      {gpus.length === 0 && <Empty why={t("overview.noFaulty")} />}
      <ul className="list">
        {gpus.slice(0, SHOWN).map((gpu) => (
          <li key={`${gpu.node}/${gpu.index}`}>
            <div className="grow">
              <Link to={`/nodes/${encodeURIComponent(gpu.node)}`} className="mono">
                {gpu.node}
              </Link>{" "}
              {gpu.index !== null && `GPU ${gpu.index}`}
              <div className="message">{t("overview.faultyLine", { reason: gpu.reason })}</div>
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

export function StarvedLeaves({ leaves, className }: { leaves: readonly StarvedLeaf[]; className: string }) {
  const { t } = useWords();
  return (
    <Panel slug="starved-leaves" title={t("overview.starved")} note={leaves.length > 0 ? count(leaves.length) : undefined} className={className} flush>
      {leaves.length === 0 && <Empty why={t("overview.noStarved")} />}
      <ul className="list">
        {leaves.slice(0, SHOWN).map((leaf) => (
          <li key={`${leaf.path} ${leaf.resource}`}>
            <div className="grow">
              <Link to={`/quota?path=${encodeURIComponent(leaf.path)}`} className="mono">
                {leaf.path}
              </Link>
              <div className="message num">
                {t("overview.starvedLine", { used: amount(leaf.unit, leaf.used), min: amount(leaf.unit, leaf.min), unit: unitWord(amountUnit(leaf.unit), t), resource: leaf.resource, n: leaf.waitingPods })}
              </div>
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** What it is about, and the way there where there is a page. */
function About({ warning: w }: { warning: RecentWarning }) {
  const name = w.namespace ? `${w.namespace}/${w.object}` : w.object;
  const page = w.node ? `/nodes/${encodeURIComponent(w.node)}` : w.job ? `/jobs/${[w.namespace, ...w.job.split("/")].map(encodeURIComponent).join("/")}` : "";
  if (!page) return <span className="mono dim">{name}</span>;
  return (
    <Link to={page} className="mono">
      {name}
    </Link>
  );
}

export function RecentWarnings({ warnings, className }: { warnings: readonly RecentWarning[]; className: string }) {
  const { t } = useWords();
  return (
    <Panel slug="recent-warnings" title={t("overview.warnings")} className={className} flush>
      {warnings.length === 0 && <Empty why={t("overview.noWarnings")} />}
      <ul className="list">
        {warnings.slice(0, SHOWN).map((w, i) => (
          <li key={`${w.object} ${w.reason} ${i}`}>
            <span className="when">
              <Ago at={w.at} />
            </span>
            <div className="grow">
              <div className="clip">
                <b>{w.reason}</b> <About warning={w} />
                {w.objects > 1 && <span className="dim num"> {t("overview.andMore", { n: w.objects - 1 })}</span>}
                {w.count > 1 && <span className="dim num"> ×{count(w.count)}</span>}
              </div>
              <div className="message">{w.message}</div>
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
