// My access: who I am here, how I signed in, and where I may work.
import { useMe } from "../../api/queries";
import type { Me } from "../../api/types";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Command } from "../../parts/Copy";
import { PageHead } from "../../parts/PageHead";
import { Panel } from "../../parts/Panel";
import { Answered, Bones, Empty, FailedRefresh } from "../../parts/States";
import { Credentials } from "../people/Credentials";

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
        {user.id && isAdmin && <Command text={`fairlead kubeconfig create ${user.id}`} />}
      </Panel>
      {user.id && (
        <Panel slug="access-credentials" title={t("cred.title")}>
          <Credentials path="/me" user={user.id} namespaces={user.namespaces} isReady />
        </Panel>
      )}
    </>
  );
}

const listed = (names: readonly string[]): string => (names.length > 0 ? names.map(shown).join(", ") : "—");
