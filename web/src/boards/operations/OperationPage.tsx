// One operation: its steps with state, time and object in hand. It runs in a server, so the page can be left and opened again.
import { useNow } from "../../app/clock";
import { useMe, useOperation } from "../../api/queries";
import type { OperationDetail, StepRow } from "../../api/types";
import { duration, exactTime, parseTime, UNKNOWN } from "../../format/format";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { PageHead } from "../../parts/PageHead";
import { Panel } from "../../parts/Panel";
import { Answered, Bones, FailedRefresh } from "../../parts/States";
import { Status } from "../../parts/Status";
import { WriteAction } from "../../parts/WriteAction";
import { Link } from "../../router/Link";
import "./operations.css";
import { kindWord, stepSeconds, subjectPage, subjectWord } from "./words";

export function OperationPage({ id }: { id: string }) {
  const words = useWords();
  const { t } = words;
  const asked = useOperation(id);
  const row = asked.data?.row;
  const title = row ? `${kindWord(row.kind, words)} ${subjectWord(row.subject)}` : id;
  const crumb = (
    <div className="crumb">
      <Link to="/operations">{t("board.operations")}</Link>
    </div>
  );
  return (
    <main className="page" data-testid="page-operation" data-state={row?.state}>
      <PageHead title={title} before={crumb} answer={asked.data} of={{ kind: "operation", id, runs: row?.state === "Running" }} onRefresh={() => void asked.refetch()} />
      <FailedRefresh asked={[asked]} />
      <Answered asked={asked} bones={<Bones lines={8} />}>
        {(detail) => <Found id={id} detail={detail} />}
      </Answered>
    </main>
  );
}

function Found({ id, detail }: { id: string; detail: OperationDetail }) {
  const words = useWords();
  const { t } = words;
  const { row, steps, undo } = detail;
  const page = subjectPage(row.subject);
  const hasUndone = undo.some(({ state }) => state !== "Waiting" && state !== "Skipped");
  return (
    <>
      <Actions id={id} detail={detail} />
      {row.message && (
        <div className="banner broken" role="status" data-testid="operation-message">
          <span lang="en">{shown(row.message)}</span>
        </div>
      )}
      <dl className="facts wide num" data-testid="operation-facts">
        <dt>{t("operations.state")}</dt>
        <dd data-testid="operation-state">
          <Status word={row.state} {...(detail.isCancelled && row.state === "Running" && { suffix: ` · ${t("operations.stopping")}` })} />
        </dd>
        <dt>{t("operations.subject")}</dt>
        <dd className="mono">{page ? <Link to={page}>{subjectWord(row.subject)}</Link> : shown(subjectWord(row.subject))}</dd>
        <dt>{t("operations.by")}</dt>
        <dd>{shown(row.createdBy) || UNKNOWN}</dd>
        <dt>{t("operations.started")}</dt>
        <dd>{exactTime(parseTime(row.createdAt))}</dd>
        <dt>{t("operations.holder")}</dt>
        <dd className="mono">{shown(row.holder) || UNKNOWN}</dd>
        <dt>{t("operations.updated")}</dt>
        <dd>{exactTime(parseTime(row.updatedAt))}</dd>
      </dl>
      <Panel slug="operation-steps" title={t("operations.stepsTitle", { done: row.stepsDone, total: row.stepsTotal })}>
        <Steps of={steps} testId="operation-steps" />
      </Panel>
      {hasUndone && (
        <Panel slug="operation-undo" title={t("operations.undo")}>
          <Steps of={undo} testId="operation-undo" />
        </Panel>
      )}
    </>
  );
}

function Actions({ id, detail }: { id: string; detail: OperationDetail }) {
  const { t } = useWords();
  const me = useMe().data;
  if (me?.way === "none" || (!detail.canCancel && !detail.canRetry)) return null;
  const path = `/operations/${encodeURIComponent(id)}`;
  return (
    <p className="write-acts" data-testid="operation-actions">
      {detail.canCancel && <WriteAction slug="cancel-operation" label={t("operations.cancel")} question={t("operations.cancelQuestion", { id })} effect={t("operations.cancelEffect")} method="DELETE" path={path} body={null} isDeletion />}
      {detail.canRetry && <WriteAction slug="retry-operation" label={t("operations.retry")} question={t("operations.retryQuestion", { id })} effect={t("operations.retryEffect")} method="POST" path={`${path}/retry`} body={{}} />}
    </p>
  );
}

const TONES: Readonly<Record<string, string>> = { Waiting: "unknown", Running: "run", Done: "good", Failed: "bad", Skipped: "unknown" };

function Steps({ of: steps, testId }: { of: readonly StepRow[]; testId: string }) {
  const { t, code } = useWords();
  const now = useNow(1000);
  return (
    <ol className="steps" data-testid={testId}>
      {steps.map((step, index) => (
        // Two steps may have one title; their order never changes.
        // oxlint-disable-next-line react/no-array-index-key -- as above
        <li key={`${index} ${step.title}`} data-state={step.state}>
          <span className="status" data-tone={TONES[step.state] ?? "unknown"}>
            {code("operations.step", step.state, {}, step.state)}
          </span>
          <div className="step-words">
            <div lang="en">{shown(step.title)}</div>
            {step.message && (
              <div className="dim" lang="en">
                {shown(step.object && !step.message.includes(step.object) ? `${step.object}: ${step.message}` : step.message)}
              </div>
            )}
            {step.event && (
              <div className="hint" lang="en">
                {t("operations.event")}: {shown(step.event)}
              </div>
            )}
          </div>
          <time className="num dim" title={exactTime(parseTime(step.startedAt))}>
            {step.startedAt ? duration(stepSeconds(step.startedAt, step.endedAt, now)) : ""}
          </time>
        </li>
      ))}
    </ol>
  );
}
