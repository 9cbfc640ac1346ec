// Recent warning events, similar ones in one line, each with a link to its object.
import type { RecentWarning } from "../../api/types";
import { ObjectCommand } from "../../commands/EqualCommand";
import { count } from "../../format/format";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { Panel } from "../../parts/Panel";
import { Empty } from "../../parts/States";
import { Link } from "../../router/Link";

const SHOWN = 8;

/** What it is about, and the way there where there is a page. */
function About({ warning: w }: { warning: RecentWarning }) {
  const name = w.namespace ? `${w.namespace}/${w.object}` : w.object;
  const page = w.node ? `/nodes/${encodeURIComponent(w.node)}` : w.job ? `/jobs/${[w.namespace, ...w.job.split("/")].map(encodeURIComponent).join("/")}` : "";
  if (!page) return <span className="mono dim">{shown(name)}</span>;
  return (
    <Link to={page} className="mono">
      {name}
    </Link>
  );
}

export function RecentWarnings({ warnings, className }: { warnings: readonly RecentWarning[]; className: string }) {
  const { t } = useWords();
  return (
    <Panel slug="recent-warnings" title={t("overview.warnings")} className={className} tools={<ObjectCommand of={{ kind: "warnings" }} />} flush>
      {warnings.length === 0 && <Empty why={t("overview.noWarnings")} />}
      <ul className="list">
        {warnings.slice(0, SHOWN).map((w, i) => (
          <li key={`${w.object} ${w.reason} ${i}`}>
            <span className="when">
              <Ago at={w.at} />
            </span>
            <div className="grow">
              <div className="clip">
                <b>{shown(w.reason)}</b> <About warning={w} />
                {w.objects > 1 && <span className="dim num"> {t("overview.andMore", { n: w.objects - 1 })}</span>}
                {w.count > 1 && <span className="dim num"> ×{count(w.count)}</span>}
              </div>
              <div className="message">{shown(w.message)}</div>
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
