// Which cluster is this, what time is it there, and where to next? 48 px, one line.
import { useMe } from "../api/queries";
import { timeOfDay } from "../format/format";
import { useWords } from "../i18n/locale";
import { useLook } from "../look/theme";
import { Icon } from "../parts/Icon";
import { Link } from "../router/Link";
import { usePlace } from "../router/router";
import { useClock, useNow } from "./clock";
import { isHere } from "./Frame";
import { Search } from "./Search";

export function Header({ onHelp }: { onHelp: () => void }) {
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
      {me?.cluster.world === "simulated" && <SimulatedBadge />}
      <span className="spring" />
      <nav className="boards" aria-label={t("frame.boards")}>
        {links.map(([to, key]) => (
          <Link key={to} to={to} aria-current={isHere(path, to) ? "page" : undefined}>
            {t(key)}
          </Link>
        ))}
      </nav>
      <Search />
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
        <span className="person" title={t(me.user.role === "admin" ? "role.admin" : "role.researcher")}>
          {me.user.name}
        </span>
      )}
    </header>
  );
}

function SimulatedBadge() {
  const { t } = useWords();
  const now = useNow(1000);
  const { speed } = useClock();
  return (
    <span className="badge" data-testid="badge-simulated" title={t("frame.simulatedHint")}>
      <b>{t("frame.simulated")}</b>
      <span className="num">{timeOfDay(now)}</span>
      {speed !== 1 && <span className="num">×{speed}</span>}
    </span>
  );
}
