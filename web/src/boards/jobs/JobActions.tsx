// What the user may do to a job: suspend, resume, delete. The server decides whether; here are the buttons.
import { useMe } from "../../api/queries";
import type { JobRow } from "../../api/types";
import { useWords } from "../../i18n/locale";
import { WriteAction } from "../../parts/WriteAction";
import { Link } from "../../router/Link";
import { navigate } from "../../router/router";
import type { JobId } from "./JobsBoard";

/** `SUSPENDED`: by its owner; `QUEUING`: by quota. */
const SUSPENDED = ["SUSPENDED", "QUEUING"];

export function JobActions({ id, job }: { id: JobId; job: JobRow }) {
  const { t } = useWords();
  const me = useMe().data;
  if (!me || me.way === "none" || !job.live) return null;
  const path = `/jobs/${id.map(encodeURIComponent).join("/")}`;
  const [namespace, , name] = id;
  const words = { job: `${namespace}/${name}` };
  const isSuspended = SUSPENDED.includes(job.state);
  const isOver = job.finishedAt !== null;
  return (
    <p className="write-acts" data-testid="job-actions">
      {!isOver && !isSuspended && <WriteAction slug="suspend" label={t("job.suspend")} question={t("job.suspendQuestion", words)} effect={t("job.suspendEffect")} method="PATCH" path={path} body={{ suspended: true }} />}
      {!isOver && isSuspended && <WriteAction slug="resume" label={t("job.resume")} question={t("job.resumeQuestion", words)} effect={t("job.resumeEffect")} method="PATCH" path={path} body={{ suspended: false }} />}
      <Link to={`/submit?clone=${id.map(encodeURIComponent).join("/")}`} className="toggle as-link" data-testid="action-clone">
        {t("job.clone")}
      </Link>
      <WriteAction slug="delete-job" label={t("tree.delete")} question={t("job.deleteQuestion", words)} effect={t("job.deleteEffect")} method="DELETE" path={path} body={null} isDeletion onDone={() => navigate("/jobs")} />
    </p>
  );
}
