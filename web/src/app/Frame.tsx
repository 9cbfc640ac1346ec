// What stands around every board: menu, header, and the keys that work everywhere.
import { type ReactNode, useEffect, useEffectEvent, useState } from "react";
import { useMe } from "../api/queries";
import { useWords } from "../i18n/locale";
import { Icon } from "../parts/Icon";
import { ServerTrouble } from "../parts/States";
import { Link } from "../router/Link";
import { currentPlace, goBack, navigate, usePlace } from "../router/router";
import { BOARDS, boardAbove } from "./boards";
import { FindBox } from "./FindBox";
import { Header } from "./Header";
import { HealthBanner } from "./HealthBanner";
import { focusRow, isTyping, keys, readKey } from "./keyboard";
import { Mark } from "./Mark";
import { Shortcuts } from "./Shortcuts";
import { readStored, store } from "./stored";
import { Upgraded } from "./Upgraded";

const STORED = "fairlead.menu";

export function Frame({ children }: { children: ReactNode }) {
  const { t } = useWords();
  const [collapsed, setCollapsed] = useState(() => readStored(STORED) === "collapsed");
  const [help, setHelp] = useState(false);
  const [find, setFind] = useState(false);
  useKeys(
    () => setHelp(true),
    () => setFind(true),
  );
  const fold = () => {
    store(STORED, collapsed ? "open" : "collapsed");
    setCollapsed(!collapsed);
  };
  return (
    <div className="frame" data-collapsed={collapsed}>
      <a className="skip" href="#content">
        {t("frame.skip")}
      </a>
      <aside className="menu" aria-label={t("frame.menu")}>
        <Link to="/overview" className="brand" aria-label="Fairlead">
          <Mark />
          <span className="word">Fairlead</span>
        </Link>
        <Menu />
        <button type="button" className="plain fold" onClick={fold} aria-label={t(collapsed ? "frame.unfold" : "frame.fold")} aria-expanded={!collapsed}>
          <Icon name={collapsed ? "unfold" : "fold"} />
          <span className="word">{t("frame.fold")}</span>
        </button>
      </aside>
      <Header onHelp={() => setHelp(true)} onFind={() => setFind(true)} />
      <div className="content" id="content">
        <ServerTrouble />
        <HealthBanner />
        <Upgraded />
        {children}
      </div>
      <Shortcuts open={help} onClose={() => setHelp(false)} />
      <FindBox open={find} onClose={() => setFind(false)} onHelp={() => setHelp(true)} />
    </div>
  );
}

function Menu() {
  const { t } = useWords();
  const { path } = usePlace();
  const me = useMe().data;
  const isSignedIn = me !== undefined && me.way !== "none";
  const isAdmin = isSignedIn && me.user.role === "admin";
  return (
    <nav aria-label={t("frame.menu")}>
      {BOARDS.filter((board) => (isAdmin || !board.isForAdmins) && (isSignedIn || !board.isForSignedIn)).map((board) => (
        <Link key={board.path} to={board.path} aria-current={isHere(path, board.path) ? "page" : undefined} title={t(board.title)}>
          <Icon name={board.icon} />
          <span className="word">{t(board.title)}</span>
          <kbd aria-hidden="true">g {board.key}</kbd>
        </Link>
      ))}
    </nav>
  );
}

export function isHere(path: string, board: string): boolean {
  return path === board || path.startsWith(`${board}/`) || (path === "/" && board === "/overview");
}

/** Esc first closes what is open: a popover has a key of its own. */
function leaveDetail(): void {
  const board = boardAbove(currentPlace().path);
  if (board && !document.querySelector(".ant-popover:not(.ant-popover-hidden)")) goBack(board);
}

function useKeys(onHelp: () => void, onFind: () => void): void {
  const help = useEffectEvent(onHelp);
  const find = useEffectEvent(onFind);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
      if ((event.metaKey || event.ctrlKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        find();
        return;
      }
      const press = { key: event.key, typing: isTyping(event.target), modified: event.metaKey || event.ctrlKey || event.altKey };
      const [next, command] = readKey(keys.state, press, performance.now());
      keys.state = next;
      if (!command) return;
      if (command.kind === "back") {
        leaveDetail();
        return;
      }
      event.preventDefault();
      if (command.kind === "help") help();
      else if (command.kind === "search") find();
      else if (command.kind === "row") focusRow(event.key);
      else if (command.kind === "time") document.querySelector<HTMLButtonElement>("button[data-testid=badge-simulated]")?.click();
      else navigate(BOARDS.find((b) => b.key === command.key)?.path ?? "/overview");
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}
