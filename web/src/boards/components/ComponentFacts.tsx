// One component: how it is, its values, objects and operations, and what an administrator may do.
import { Button } from "antd";
import { useState } from "react";
import { useComponent, useMe } from "../../api/queries";
import type { ComponentListRow } from "../../api/types";
import { UNKNOWN } from "../../format/format";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { Answered, Bones } from "../../parts/States";
import { Status } from "../../parts/Status";
import { Link } from "../../router/Link";
import { kindWord } from "../operations/words";
import { groupWord, titleOf } from "./columns";
import { PartForm } from "./PartForm";
import { type Do, PlanForm } from "./PlanForm";

export function ComponentFacts({ row }: { row: ComponentListRow }) {
  const words = useWords();
  const { t, locale } = words;
  return (
    <>
      <ComponentActions row={row} />
      {row.message && (
        <p className="waits" lang="en" data-testid="component-message">
          {shown(row.message)}
        </p>
      )}
      {row.state === "Foreign" && <p>{t("components.foreign")}</p>}
      {row.isRequired && <p>{t("components.required")}</p>}
      <dl className="facts num" data-testid="component-facts">
        <dt>{t("components.title")}</dt>
        <dd>{titleOf(row, locale)}</dd>
        <dt>{t("components.group")}</dt>
        <dd>{groupWord(row.group, words)}</dd>
        <dt>{t("components.state")}</dt>
        <dd>
          <Status word={row.state ?? "Unknown"} />
        </dd>
        <dt>{t("components.version")}</dt>
        <dd>{shown(row.version) || UNKNOWN}</dd>
        <dt>{t("components.available")}</dt>
        <dd>{shown(row.available) || UNKNOWN}</dd>
        <dt>{t("col.namespace")}</dt>
        <dd className="mono">{shown(row.namespace) || UNKNOWN}</dd>
        {row.release && (
          <>
            <dt>{t("components.release")}</dt>
            <dd className="mono">{shown(row.release)}</dd>
          </>
        )}
      </dl>
      <More id={row.id} />
    </>
  );
}

function ComponentActions({ row }: { row: ComponentListRow }) {
  const { t } = useWords();
  const [dialog, setDialog] = useState<Do | null>(null);
  const me = useMe().data;
  if (me?.user.role !== "admin" || me.way === "none" || !row.source || row.state === "Foreign") return null;
  const isThere = row.state !== null && row.state !== "NotInstalled";
  const close = () => setDialog(null);
  const isBusy = row.operation !== "";
  const Form = row.source === "command" ? PartForm : PlanForm;
  return (
    <div className="person-tools" data-testid="component-actions">
      {isBusy && (
        <Link to={`/operations/${encodeURIComponent(row.operation)}`} data-testid="component-operation">
          {t("datasets.atWork")}
        </Link>
      )}
      {!isThere && (
        <Button type="primary" onClick={() => setDialog("deploy")} disabled={isBusy} data-testid="action-deploy">
          {t("components.deploy")}
        </Button>
      )}
      {isThere && row.canUpgrade && (
        <Button onClick={() => setDialog("upgrade")} disabled={isBusy} data-testid="action-upgrade">
          {t("components.upgrade")}
        </Button>
      )}
      {isThere && (
        <Button danger onClick={() => setDialog("remove")} disabled={isBusy} data-testid="action-remove">
          {t("components.remove")}
        </Button>
      )}
      {dialog && <Form row={row} act={dialog} onClose={close} />}
    </div>
  );
}

const SHOWN_MAX = 50;

function More({ id }: { id: string }) {
  const words = useWords();
  const { t } = words;
  const asked = useComponent(id);
  return (
    <Answered asked={asked} bones={<Bones lines={4} />}>
      {({ values, objects, history, links }) => (
        <>
          {links.length > 0 && (
            <ul className="plain" data-testid="component-links">
              {links.map((each) => (
                <li key={each}>
                  <a href={each} target="_blank" rel="noopener noreferrer">
                    {shown(each)}
                  </a>
                </li>
              ))}
            </ul>
          )}
          {values && (
            <details>
              <summary>{t("components.values")}</summary>
              <pre className="secret mono">{shown(values)}</pre>
            </details>
          )}
          {objects.length > 0 && (
            <details data-testid="component-objects">
              <summary>{t("components.objects", { n: objects.length })}</summary>
              <ul className="plain">
                {objects.slice(0, SHOWN_MAX).map((each) => (
                  <li key={`${each.kind} ${each.namespace}/${each.name}`}>
                    {shown(each.kind)} <span className="mono">{shown(each.namespace ? `${each.namespace}/${each.name}` : each.name)}</span>
                  </li>
                ))}
                {objects.length > SHOWN_MAX && <li className="dim">{t("form.more", { n: objects.length - SHOWN_MAX })}</li>}
              </ul>
            </details>
          )}
          {history.length > 0 && (
            <>
              <h3>{t("components.history")}</h3>
              <ul className="plain" data-testid="component-history">
                {history.map((each) => (
                  <li key={each.id}>
                    <Link to={`/operations/${encodeURIComponent(each.id)}`}>{kindWord(each.kind, words)}</Link> <Status word={each.state} /> {shown(each.createdBy)} <Ago at={each.createdAt} />
                  </li>
                ))}
              </ul>
            </>
          )}
        </>
      )}
    </Answered>
  );
}
