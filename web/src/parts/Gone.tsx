// An object that was deleted while its page was open: a note has the time when it was last seen; the last values stay.
import { ApiError } from "../api/fetch";
import type { Answer } from "../api/types";
import { exactTime, parseTime } from "../format/format";
import { useWords } from "../i18n/locale";
import { Link } from "../router/Link";

interface Asked {
  readonly data: Answer | undefined;
  readonly error: Error | null;
}

/** It existed, and the server reports that it does not exist any more. A response of a proxy does not count. */
export function isGone({ data, error }: Asked): boolean {
  return data !== undefined && error instanceof ApiError && error.status === 404 && error.code === "not-found";
}

const WORDS = {
  job: { said: "gone.job", list: "board.jobs", path: "/jobs" },
  node: { said: "gone.node", list: "board.nodes", path: "/nodes" },
} as const;

/** Nothing while it is there; it is asked for again as before, so one of the same name takes its place. */
export function Gone({ asked, kind }: { asked: Asked; kind: keyof typeof WORDS }) {
  const { t } = useWords();
  if (!asked.data || !isGone(asked)) return null;
  const { said, list, path } = WORDS[kind];
  return (
    <div className="banner" role="status" data-testid="state-gone">
      <span>
        {t(said, { at: exactTime(parseTime(asked.data.generatedAt)) })} <span className="hint">{t("state.shownIsOld")}</span>
      </span>
      <Link to={path}>{t("action.toList", { list: t(list) })}</Link>
    </div>
  );
}
