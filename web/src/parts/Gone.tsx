// A thing that was deleted while somebody looked at it: it is said, and when it was seen last; the last picture stays.
import { ApiError } from "../api/fetch";
import type { Answer } from "../api/types";
import { exactTime, parseTime } from "../format/format";
import { useWords } from "../i18n/locale";
import { Link } from "../router/Link";

interface Asked {
  readonly data: Answer | undefined;
  readonly error: Error | null;
}

/** It was there, and the server says that it is there no more. An answer that is not ours (a proxy's page) says nothing of it. */
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
