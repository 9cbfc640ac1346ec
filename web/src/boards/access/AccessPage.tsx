// My access: who I am here, how I signed in, and where I may work.
import { useMutation } from "@tanstack/react-query";
import { Button } from "antd";
import { useState } from "react";
import { ApiError, postJson } from "../../api/fetch";
import { useMe, useOwnUser } from "../../api/queries";
import type { IssuedKubeconfig, Me } from "../../api/types";
import { exactTime, parseTime } from "../../format/format";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Command } from "../../parts/Copy";
import { allFaults, Field, WriteFault } from "../../parts/FormDialog";
import { PageHead } from "../../parts/PageHead";
import { Panel } from "../../parts/Panel";
import { saveText } from "../../parts/save";
import { Answered, Bones, Empty, FailedRefresh, useFaultWords } from "../../parts/States";
import { Credentials } from "../people/Credentials";
import { PLAIN_ID } from "../people/words";
import { Rights } from "./Rights";

export function AccessPage() {
  const { t } = useWords();
  const asked = useMe();
  return (
    <main className="page" data-testid="page-access">
      <PageHead title={t("access.title")} answer={undefined} onRefresh={() => void asked.refetch()} />
      <FailedRefresh asked={[asked]} />
      <Answered asked={asked} bones={<Bones lines={6} />}>
        {(me) => <Access me={me} />}
      </Answered>
    </main>
  );
}

function Access({ me }: { me: Me }) {
  const { t, code } = useWords();
  const { user } = me;
  const isAdmin = user.role === "admin";
  return (
    <>
      <Panel slug="access" title={t("access.who")}>
        <dl className="facts">
          <dt>{t("person.acts")}</dt>
          <dd>{shown(user.name)}</dd>
          <dt>{t("access.id")}</dt>
          <dd className="mono">{user.id ? shown(user.id) : t("access.noId")}</dd>
          <dt>{t("person.role")}</dt>
          <dd>{t(isAdmin ? "role.admin" : "role.researcher")}</dd>
          <dt>{t("access.way")}</dt>
          <dd>{code("signin.way", me.way, {}, me.way)}</dd>
        </dl>
      </Panel>
      {!user.id && isAdmin && me.way === "token" && <OwnUser me={me} />}
      <Panel slug="access-where" title={t("access.where")}>
        {user.namespaces.length === 0 && !isAdmin ? (
          <Empty why={t("access.noQuota")} />
        ) : (
          <dl className="facts">
            <dt>{t("access.groups")}</dt>
            <dd className="mono">{listed(user.groups)}</dd>
            <dt>{t("access.leaves")}</dt>
            <dd className="mono">{listed(user.leaves)}</dd>
            <dt>{t("access.namespaces")}</dt>
            <dd className="mono">{listed(user.namespaces)}</dd>
          </dl>
        )}
        <p className="dim access-note">{t(isAdmin ? "access.admin" : "access.researcher")}</p>
      </Panel>
      <Rights />
      {user.id && me.way !== "none" && <Kubeconfig me={me} />}
      {user.id && me.way !== "none" && (
        <Panel slug="access-credentials" title={t("cred.title")}>
          <Credentials path="/me" user={user.id} namespaces={user.namespaces} isReady />
        </Panel>
      )}
    </>
  );
}

/** Of an administrator who has no user: makes one of the account that signed in. */
function OwnUser({ me }: { me: Me }) {
  const { t } = useWords();
  const [name, setName] = useState(me.user.name.split(":").at(-1) ?? "");
  const make = useOwnUser(me.csrf);
  const faults = allFaults(make.error, undefined);
  const isReady = name.trim() !== "";
  return (
    <Panel slug="access-own" title={t("access.own")}>
      <p className="dim access-note">{t("access.ownHint")}</p>
      <form
        className="access-own"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady && !make.isPending) make.mutate(name);
        }}
      >
        <Field label={t("users.name")} hint={t("users.idHint", { id: PLAIN_ID(name) || "—" })} faults={faults}>
          <input type="text" value={name} maxLength={253} onChange={(event) => setName(event.target.value)} data-testid="own-user-name" />
        </Field>
        {make.error && faults.length === 0 && <WriteFault error={make.error} />}
        <Button htmlType="submit" type="primary" disabled={!isReady} loading={make.isPending} data-testid="action-own-user">
          {t("access.ownMake")}
        </Button>
      </form>
    </Panel>
  );
}

const HOURS = [1, 8, 24] as const;

/** A kubeconfig with a new token: it is saved as a file, and neither the page nor the server keeps it. */
function Kubeconfig({ me }: { me: Me }) {
  const { t } = useWords();
  const words = useFaultWords();
  const [hours, setHours] = useState<number>(8);
  const issue = useMutation({
    mutationFn: () => postJson<IssuedKubeconfig>("/me/kubeconfigs", { lifetimeSeconds: hours * 3600, note: t("access.note") }, me.csrf),
    onSuccess: (made) => saveText(`${me.user.id}.kubeconfig`, made.kubeconfig, "application/yaml"),
  });
  return (
    <Panel slug="access-kubeconfig" title={t("access.kubeconfig")}>
      <p className="dim access-note">{t("access.kubeconfigHint")}</p>
      <div className="access-row">
        <span className="seg" role="group" aria-label={t("access.lifetime")}>
          {HOURS.map((each) => (
            <button key={each} type="button" className="toggle" aria-pressed={hours === each} onClick={() => setHours(each)}>
              {t("access.hours", { n: each })}
            </button>
          ))}
        </span>
        <Button onClick={() => issue.mutate()} loading={issue.isPending} data-testid="action-kubeconfig">
          {t("access.download")}
        </Button>
      </div>
      {issue.data && (
        <p role="status" data-testid="kubeconfig-made">
          {t("access.made", { credential: issue.data.id, until: exactTime(parseTime(issue.data.expiresAt)) })} <Command text={`kubectl --kubeconfig ${me.user.id}.kubeconfig get pods`} />
        </p>
      )}
      {issue.error && (
        <p className="form-fault" role="alert" data-testid="kubeconfig-fault">
          {issue.error instanceof ApiError ? words(issue.error) : issue.error.message}
        </p>
      )}
    </Panel>
  );
}

const listed = (names: readonly string[]): string => (names.length > 0 ? names.map(shown).join(", ") : "—");
