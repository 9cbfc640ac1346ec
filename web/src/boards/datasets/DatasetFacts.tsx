// One data set, or one claim: what it mounts, what caches it, which jobs use it, and what an administrator may do.
import { Button } from "antd";
import { type ReactNode, useState } from "react";
import { useDataset } from "../../api/queries";
import type { DataSetDetail, DataSetRow } from "../../api/types";
import { count, percent, UNKNOWN } from "../../format/format";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { Answered, Bones } from "../../parts/States";
import { Status } from "../../parts/Status";
import { Link } from "../../router/Link";
import { jobPage } from "../jobs/columns";
import { AccelerateForm } from "./AccelerateForm";
import { acceleratedWord, bytes, isDataSet, phaseSuffix } from "./columns";
import { EndForm } from "./EndForm";
import { PreheatForm } from "./PreheatForm";
import { ScaleForm } from "./ScaleForm";
import { useMayWrite } from "./useMayWrite";

export function DatasetFacts({ row }: { row: DataSetRow }) {
  const { t } = useWords();
  return (
    <>
      <DatasetActions row={row} />
      {row.message && (
        <p className="waits" lang="en" data-testid="dataset-message">
          {shown(row.message)}
        </p>
      )}
      <dl className="facts num">
        <dt>{t("col.namespace")}</dt>
        <dd className="mono">{shown(row.namespace)}</dd>
        <dt>{t("datasets.kind")}</dt>
        <dd>{t(isDataSet(row) ? "datasets.dataset" : "datasets.claim")}</dd>
        <dt>{t("col.status")}</dt>
        <dd>
          <Status word={row.status} suffix={phaseSuffix(row)} />
        </dd>
        <dt>{t("datasets.accelerated")}</dt>
        <dd>{shown(acceleratedWord(row, t))}</dd>
        <dt>{t("datasets.size")}</dt>
        <dd>{bytes(row.sizeBytes)}</dd>
        <dt>{t("datasets.created")}</dt>
        <dd>
          <Ago at={row.createdAt} />
        </dd>
      </dl>
      <More row={row} />
    </>
  );
}

function DatasetActions({ row }: { row: DataSetRow }) {
  const { t } = useWords();
  const [dialog, setDialog] = useState<"accelerate" | "preheat" | "scale" | "end" | null>(null);
  if (!useMayWrite()) return null;
  const close = () => setDialog(null);
  return (
    <div className="person-tools" data-testid="dataset-actions">
      {row.operation && (
        <Link to={`/operations/${row.operation}`} data-testid="dataset-operation">
          {t("datasets.atWork")}
        </Link>
      )}
      {!isDataSet(row) && !row.accelerated && (
        <Button type="primary" onClick={() => setDialog("accelerate")} disabled={row.operation !== ""} data-testid="action-accelerate">
          {t("datasets.accelerate")}
        </Button>
      )}
      {isDataSet(row) && (
        <>
          <Button onClick={() => setDialog("preheat")} disabled={row.operation !== ""} data-testid="action-preheat">
            {t("datasets.preheat")}
          </Button>
          <Button onClick={() => setDialog("scale")} disabled={row.operation !== ""} data-testid="action-scale">
            {t("datasets.scale")}
          </Button>
          <Button danger onClick={() => setDialog("end")} disabled={row.operation !== ""} data-testid="action-unaccelerate">
            {t("datasets.unaccelerate")}
          </Button>
        </>
      )}
      {dialog === "accelerate" && <AccelerateForm namespace={row.namespace} claim={row.name} onClose={close} />}
      {dialog === "preheat" && <PreheatForm namespace={row.namespace} name={row.name} onClose={close} />}
      {dialog === "scale" && <ScaleForm namespace={row.namespace} name={row.name} onClose={close} />}
      {dialog === "end" && <EndForm namespace={row.namespace} name={row.name} onClose={close} />}
    </div>
  );
}

function More({ row }: { row: DataSetRow }) {
  const asked = useDataset(row.namespace, row.name);
  return (
    <Answered asked={asked} bones={<Bones lines={4} />}>
      {(detail) => <Detail row={row} detail={detail} />}
    </Answered>
  );
}

function Detail({ row, detail }: { row: DataSetRow; detail: DataSetDetail }) {
  const { t } = useWords();
  // A claim of the same name as a data set is Fluid's: its panel shows the claim alone.
  const isOwn = detail.row.kind === row.kind;
  return (
    <>
      {isOwn && detail.cache && <CacheFacts row={row} detail={detail} cache={detail.cache} />}
      {!isDataSet(row) && (
        <dl className="facts">
          <dt>{t("datasets.volume")}</dt>
          <dd className="mono">{shown(row.source.join(", ")) || UNKNOWN}</dd>
        </dl>
      )}
      <Users users={detail.users} />
      {isOwn && (
        <>
          <Listed title={t("datasets.blockers")} rows={detail.blockers} testId="dataset-blockers" />
          <Listed title={t("datasets.preheats")} rows={detail.preheats.map(preheatLine)} testId="dataset-preheats" />
          <Listed title={t("datasets.conditions")} rows={detail.conditions.map(({ type, status, message }) => `${type}: ${status}${message && ` · ${message}`}`)} testId="dataset-conditions" />
          <Listed title={t("datasets.events")} rows={detail.events.map(({ reason, object, message }) => `${reason} (${object}): ${message}`)} testId="dataset-events" />
          <Listed title={t("datasets.finalizers")} rows={detail.finalizers} testId="dataset-finalizers" />
          <Listed title={t("datasets.unread")} rows={detail.unread} testId="dataset-unread" />
        </>
      )}
    </>
  );
}

const preheatLine = ({ name, phase, schedule, duration, message }: DataSetDetail["preheats"][number]): string => [name, phase, schedule, duration, message].filter(Boolean).join(" · ");

function CacheFacts({ row, detail, cache }: { row: DataSetRow; detail: DataSetDetail; cache: NonNullable<DataSetDetail["cache"]> }) {
  const { t } = useWords();
  return (
    <dl className="facts num" data-testid="dataset-cache">
      <dt>{t("datasets.source")}</dt>
      <dd className="mono">
        {detail.mounts.map((mount) => (
          <div key={`${mount.point} ${mount.path}`}>
            {shown(`${mount.point} → ${mount.path}`)}
            {[...mount.options, ...mount.secrets].map((option) => (
              <div key={option} className="dim">
                {shown(option)}
              </div>
            ))}
          </div>
        ))}
      </dd>
      <dt>{t("datasets.cached")}</dt>
      <dd>
        {percent(row.cachedPercent)} · {bytes(cache.cachedBytes)} / {bytes(cache.capacityBytes)}
      </dd>
      <dt>{t("datasets.hits")}</dt>
      <dd>{percent(cache.hitPercent)}</dd>
      <dt>{t("datasets.files")}</dt>
      <dd>{count(row.files)}</dd>
      <dt>{t("datasets.runtime")}</dt>
      <dd>
        {detail.runtimes.length === 0
          ? UNKNOWN
          : detail.runtimes.map((each) => (
              <div key={each.kind}>
                {each.kind} · {t("datasets.workers", { ready: each.ready, wanted: each.wanted })}
                {each.parts.map((part) => (
                  <div key={part.name} className="dim">
                    {part.name}: {shown(part.reason ? `${part.phase}: ${part.reason}` : part.phase)}
                  </div>
                ))}
              </div>
            ))}
      </dd>
    </dl>
  );
}

function Users({ users }: { users: DataSetDetail["users"] }) {
  const { t } = useWords();
  const lines = users.map((user) => ({ key: `${user.kind}/${user.name}`, line: <UserLine user={user} /> }));
  return <Lines title={t("datasets.users")} none={t("datasets.noUsers")} lines={lines} testId="dataset-users" />;
}

function UserLine({ user: { namespace, kind, name, job, pods } }: { user: DataSetDetail["users"][number] }) {
  const placed = shown(pods.map((pod) => (pod.node ? `${pod.name} @ ${pod.node}` : pod.name)).join(", "));
  if (kind === "Pod") return placed;
  const title = shown(`${kind}/${name}`);
  const [type] = job.split("/");
  return (
    <>
      {type ? <Link to={jobPage([namespace, type, name])}>{title}</Link> : title}: {placed}
    </>
  );
}

/** Lines of the server, or nothing: an empty list is left out unless it has a sentence for it. */
function Listed({ rows, ...list }: { title: string; rows: readonly string[]; none?: string; testId: string }) {
  return <Lines {...list} lines={rows.map((row) => ({ key: row, line: shown(row) }))} />;
}

function Lines({ title, lines, none, testId }: { title: string; lines: readonly { key: string; line: ReactNode }[]; none?: string; testId: string }) {
  if (lines.length === 0 && none === undefined) return null;
  return (
    <section className="section" data-testid={testId}>
      <h2>{title}</h2>
      {lines.length === 0 ? (
        <p className="dim">{none}</p>
      ) : (
        <ul className="plain" lang="en">
          {lines.map(({ key, line }) => (
            <li key={key}>{line}</li>
          ))}
        </ul>
      )}
    </section>
  );
}
