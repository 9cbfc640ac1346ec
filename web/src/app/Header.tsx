// Which cluster is this, what time is it there, and where to next? 48 px, one line.
import { useMe } from "../api/queries";
import { useWords } from "../i18n/locale";
import { useLook } from "../look/theme";
import { Icon } from "../parts/Icon";
import { Link } from "../router/Link";
import { usePlace } from "../router/router";
import { isHere } from "./Frame";
import { TimeBadge } from "./TimeBadge";

export function Header({ onHelp, onFind }: { onHelp: () => void; onFind: () => void }) {
  const { t, locale, setLocale } = useWords();
  const { shade, setShade } = useLook();
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
        <button type="button" className="tool" onClick={() => setLocale(locale === "en" ? "zh-CN" : "en")} aria-label={t("frame.language")} title={t("frame.language")} data-testid="action-language">
          {locale === "en" ? "中文" : "EN"}
        </button>
        <button type="button" className="tool" onClick={() => setShade(shade === "light" ? "dark" : "light")} aria-label={t(shade === "light" ? "frame.dark" : "frame.light")} title={t(shade === "light" ? "frame.dark" : "frame.light")} data-testid="action-theme">
          <Icon name={shade === "light" ? "moon" : "sun"} />
        </button>
        <button type="button" className="tool" onClick={onHelp} aria-label={t("keys.title")} title={`${t("keys.title")} (?)`}>
          ?
        </button>
      </span>
      {me && (
        <span className="person">
          <button type="button" className="tool" popoverTarget="person" title={t("person.title")} data-testid="action-person">
            {me.user.name}
          </button>
          <div className="person-panel" id="person" popover="auto" role="dialog" aria-label={t("person.title")} data-testid="person">
            <dl className="facts">
              <dt>{t("person.acts")}</dt>
              <dd>{me.user.name}</dd>
              <dt>{t("person.role")}</dt>
              <dd>{t(me.user.role === "admin" ? "role.admin" : "role.researcher")}</dd>
              <dt>{t("person.cluster")}</dt>
              <dd className="whole">{me.cluster.name}</dd>
              <dt>{t("person.server")}</dt>
              <dd className="mono whole">{location.origin}</dd>
              <dt>{t("person.version")}</dt>
              <dd className="mono">{me.version}</dd>
            </dl>
            <p className="dim">{t("person.signIn")}</p>
          </div>
        </span>
      )}
    </header>
  );
}
