// The server serves a newer page: a banner is shown, and the page reloads by itself while it is not in use.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { useMe } from "../api/queries";
import { useWords } from "../i18n/locale";
import { firstLoadFor, isBusy, newerBuild, ownBuild } from "./upgrade";

const LOOK_MS = 1000;
const keptHere = () => sessionStorage;

function useNewerBuild(): string | null {
  return newerBuild(ownBuild, useMe().data?.build);
}

function Reload() {
  const { t } = useWords();
  return (
    <button type="button" className="link" onClick={() => location.reload()}>
      {t("action.reload")}
    </button>
  );
}

export function Upgraded() {
  const { t } = useWords();
  const build = useNewerBuild();
  useEffect(() => {
    if (!build) return undefined;
    const timer = setInterval(() => {
      if (isBusy()) return;
      clearInterval(timer);
      if (firstLoadFor(build, keptHere)) location.reload();
    }, LOOK_MS);
    return () => clearInterval(timer);
  }, [build]);
  if (!build) return null;
  return (
    <div className="banner server" role="status" data-testid="state-upgraded">
      <span>{t("state.upgraded")}</span>
      <Reload />
    </div>
  );
}

/** In place of what a script would have drawn. Whether the server was upgraded is asked at once. */
export function ScriptMissing() {
  const { t } = useWords();
  const client = useQueryClient();
  const build = useNewerBuild();
  useEffect(() => void client.invalidateQueries({ queryKey: ["me"] }), [client]);
  return (
    <p className="state" data-testid="state-script" role="alert">
      {t(build ? "state.upgraded" : "state.script")} <Reload />
    </p>
  );
}
