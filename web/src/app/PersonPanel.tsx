// Who is signed in, as what, and how to leave; behind the name in the header.
import { useState } from "react";
import { ApiError } from "../api/fetch";
import { signOut, useActAs } from "../api/session";
import type { Me } from "../api/types";
import { shown } from "../format/shown";
import { useWords, type Words } from "../i18n/locale";
import { Link } from "../router/Link";

export function PersonPanel({ me }: { me: Me }) {
  const { t } = useWords();
  return (
    <span className="person">
      <button type="button" className="tool" popoverTarget="person" title={t("person.title")} data-testid="action-person">
        {shown(me.user.name)}
      </button>
      <div className="person-panel" id="person" popover="auto" role="dialog" aria-label={t("person.title")} data-testid="person">
        <dl className="facts">
          <dt>{t("person.acts")}</dt>
          <dd>{shown(me.user.name)}</dd>
          <dt>{t("person.role")}</dt>
          <dd>{t(me.user.role === "admin" ? "role.admin" : "role.researcher")}</dd>
          <dt>{t("person.cluster")}</dt>
          <dd className="whole">{me.cluster.name}</dd>
          <dt>{t("person.server")}</dt>
          <dd className="mono whole">{location.origin}</dd>
          <dt>{t("person.version")}</dt>
          <dd className="mono">{me.version}</dd>
        </dl>
        {me.way === "none" ? <p className="dim">{t("person.signIn")}</p> : <Leave me={me} />}
      </div>
    </span>
  );
}

function Leave({ me }: { me: Me }) {
  const { t } = useWords();
  const [fault, setFault] = useState("");
  const leave = () => {
    signOut(me.csrf).catch((error: unknown) => setFault(faultWords(error, t)));
  };
  return (
    <>
      {me.canActAs.length > 0 && <ActAs me={me} onFault={setFault} />}
      {fault && (
        <p className="form-fault" role="alert">
          {fault}
        </p>
      )}
      <p className="person-acts">
        <Link to="/me" onClick={() => document.getElementById("person")?.hidePopover()}>
          {t("access.link")}
        </Link>
        <button type="button" className="link" onClick={leave} data-testid="action-sign-out">
          {t("signin.out")}
        </button>
      </p>
    </>
  );
}

/** In a simulated cluster one looks as any of its users. */
function ActAs({ me, onFault }: { me: Me; onFault: (words: string) => void }) {
  const { t } = useWords();
  const actAs = useActAs(me.csrf, (error) => onFault(faultWords(error, t)));
  return (
    <div className="person-as" role="group" aria-label={t("signin.lookAs")}>
      <span className="dim">{t("signin.lookAs")}</span>
      {me.user.id !== "" && (
        <button type="button" className="toggle" onClick={() => actAs("")} data-testid="act-as-self">
          {t("signin.self")}
        </button>
      )}
      {me.canActAs.map((user) => (
        <button key={user} type="button" className="toggle mono" aria-pressed={me.user.id === user} onClick={() => actAs(user)} data-testid={`act-as-${user}`}>
          {shown(user)}
        </button>
      ))}
    </div>
  );
}

function faultWords(error: unknown, t: Words["t"]): string {
  if (!(error instanceof ApiError)) return String(error);
  return error.code === "unreachable" ? t("error.unreachable") : error.message;
}
