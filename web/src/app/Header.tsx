// Which cluster is this, what time is it there, and where to next? 48 px, one line.
import { useMe } from "../api/queries";
import { useWords } from "../i18n/locale";
import { Icon } from "../parts/Icon";
import { Link } from "../router/Link";
import { usePlace } from "../router/router";
import { isHere } from "./Frame";
import { LookTools } from "./LookTools";
import { PersonPanel } from "./PersonPanel";
import { TimeBadge } from "./TimeBadge";

export function Header({ onHelp, onFind }: { onHelp: () => void; onFind: () => void }) {
  const { t } = useWords();
  const { path } = usePlace();
  const me = useMe().data;
  const links = [
    ["/nodes", "link.nodes"],
    ["/jobs", "link.jobs"],
    ["/quota", "link.quota"],
  ] as const;
  return (
    <header className="header">
      <span className="cluster clip" data-testid="cluster-name">
        {me?.cluster.name ?? "\u00a0"}
      </span>
      {me?.cluster.world === "simulated" && <TimeBadge />}
      <span className="spring" />
      <nav className="boards" aria-label={t("frame.boards")}>
        {links.map(([to, key]) => (
          <Link key={to} to={to} aria-current={isHere(path, to) ? "page" : undefined}>
            {t(key)}
          </Link>
        ))}
      </nav>
      <button type="button" className="search" onClick={onFind} aria-label={t("search.placeholder")} title={`${t("search.placeholder")} (/)`} data-testid="search">
        <Icon name="search" />
        <span className="word clip">{t("search.placeholder")}</span>
        <kbd>/</kbd>
      </button>
      <span className="tools nowrap">
        <LookTools />
        <button type="button" className="tool" onClick={onHelp} aria-label={t("keys.title")} title={`${t("keys.title")} (?)`}>
          ?
        </button>
      </span>
      {me && <PersonPanel me={me} />}
    </header>
  );
}
