// Credentials of a user: what was issued, a new token or kubeconfig, and revoking. A token is shown once and kept nowhere.
import { Button } from "antd";
import { useState } from "react";
import { useCredentials, useWrite } from "../../api/queries";
import type { CredentialRow, IssuedKubeconfig, IssuedToken } from "../../api/types";
import { duration } from "../../format/format";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Copy } from "../../parts/Copy";
import { Field, FormDialog, allFaults, faultsOf } from "../../parts/FormDialog";
import { Icon } from "../../parts/Icon";
import { Answered, Bones } from "../../parts/States";
import { useDialog } from "../../parts/useDialog";
import { DeleteDialog } from "./DeleteDialog";
import { LIFETIMES, USUAL_LIFETIME, whenWord } from "./words";

interface Props {
  /** `/users/bob`, or `/me`. */
  path: string;
  user: string;
  namespaces: readonly string[];
  isReady: boolean;
}

export function Credentials({ path, user, namespaces, isReady }: Props) {
  const { t } = useWords();
  const asked = useCredentials(path);
  const [dialog, setDialog] = useState<"kubeconfig" | "token" | "all" | null>(null);
  const [revoked, setRevoked] = useState<CredentialRow | null>(null);
  return (
    <section data-testid="credentials">
      <h3>{t("cred.title")}</h3>
      <div className="person-tools">
        {path !== "/me" && (
          <Button onClick={() => setDialog("kubeconfig")} disabled={!isReady} data-testid="action-kubeconfig">
            {t("cred.kubeconfig")}
          </Button>
        )}
        <Button onClick={() => setDialog("token")} disabled={!isReady} data-testid="action-token">
          {t("cred.token")}
        </Button>
        {path !== "/me" && (
          <Button danger onClick={() => setDialog("all")} data-testid="action-revoke-all">
            {t("cred.revokeAll")}
          </Button>
        )}
      </div>
      <Answered asked={asked} bones={<Bones lines={3} />}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="dim">{t("cred.none")}</p>
          ) : (
            <ul className="credentials">
              {items.map((each) => (
                <li key={each.id}>
                  <span className="mono">{shown(each.id)}</span>
                  <span>{t(each.state === "valid" ? "cred.valid" : each.state === "expired" ? "cred.expired" : "cred.renewed", { at: whenWord(each.expiresAt) })}</span>
                  <span className="dim">{shown([each.issuedBy, each.note].filter(Boolean).join(" · "))}</span>
                  <button type="button" className="link" onClick={() => setRevoked(each)} aria-label={t("cred.revokeOne", { id: each.id })}>
                    {t("cred.revoke")}
                  </button>
                </li>
              ))}
            </ul>
          )
        }
      </Answered>
      {(dialog === "kubeconfig" || dialog === "token") && <IssueDialog path={path} user={user} kind={dialog} namespaces={namespaces} onClose={() => setDialog(null)} />}
      {dialog === "all" && <DeleteDialog title={t("cred.revokeAllTitle", { user })} why={t("cred.revokeAllWhy", { user })} typed={user} path={`${path}/tokens`} onClose={() => setDialog(null)} />}
      {revoked && <DeleteDialog title={t("cred.revokeOne", { id: revoked.id })} why={t("cred.revokeWhy")} path={`${path}/tokens/${encodeURIComponent(revoked.id)}`} onClose={() => setRevoked(null)} />}
    </section>
  );
}

interface IssueProps {
  path: string;
  user: string;
  kind: "kubeconfig" | "token";
  namespaces: readonly string[];
  onClose: () => void;
}

function IssueDialog({ path, user, kind, namespaces, onClose }: IssueProps) {
  const { t } = useWords();
  const [seconds, setSeconds] = useState<number>(USUAL_LIFETIME);
  const [namespace, setNamespace] = useState(namespaces[0] ?? "");
  const [note, setNote] = useState("");
  const write = useWrite<IssuedToken & IssuedKubeconfig>();
  const faults = allFaults(write.error, undefined);
  if (write.data) return <Issued issued={write.data} onClose={onClose} />;
  const body = { lifetimeSeconds: seconds, note, ...(kind === "kubeconfig" && { namespace }) };
  return (
    <FormDialog
      title={t(kind === "token" ? "cred.tokenOf" : "cred.kubeconfigOf", { user })}
      word={t("cred.issue")}
      isBusy={write.isPending}
      error={write.error}
      testId="issue-form"
      onSubmit={() => write.mutate({ method: "POST", path: `${path}/${kind}s`, body })}
      onClose={onClose}
    >
      <Field label={t("cred.lifetime")} faults={faultsOf(faults, "lifetimeSeconds")}>
        <select value={seconds} onChange={(event) => setSeconds(Number(event.target.value))} data-testid="issue-lifetime">
          {LIFETIMES.map((each) => (
            <option key={each} value={each}>
              {duration(each)}
            </option>
          ))}
        </select>
      </Field>
      {kind === "kubeconfig" && namespaces.length > 0 && (
        <Field label={t("col.namespace")} faults={faultsOf(faults, "namespace")}>
          <select value={namespace} onChange={(event) => setNamespace(event.target.value)}>
            {namespaces.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </Field>
      )}
      <Field label={t("cred.note")} faults={faultsOf(faults, "note")}>
        <input type="text" value={note} maxLength={200} onChange={(event) => setNote(event.target.value)} />
      </Field>
    </FormDialog>
  );
}

function Issued({ issued, onClose }: { issued: Partial<IssuedToken & IssuedKubeconfig>; onClose: () => void }) {
  const { t } = useWords();
  const dialog = useDialog(true);
  const text = issued.kubeconfig ?? issued.token ?? "";
  const save = () => {
    const address = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
    const link = document.createElement("a");
    link.href = address;
    link.download = issued.fileName ?? "token";
    link.click();
    URL.revokeObjectURL(address);
  };
  return (
    <dialog className="sheet form-sheet" ref={dialog} onClose={onClose} aria-label={t("cred.issued")} data-testid="issued">
      <header>
        <h2>{t("cred.issued")}</h2>
        <button type="button" className="tool" onClick={onClose} aria-label={t("action.close")}>
          <Icon name="close" />
        </button>
      </header>
      <form method="dialog">
        <p>{t("cred.once", { at: whenWord(issued.expiresAt ?? null) })}</p>
        <code className="secret" data-testid="issued-text">
          {text}
        </code>
        <div className="form-acts">
          <Copy text={text} />
          {issued.fileName && (
            <Button onClick={save} data-testid="issued-download">
              {t("cred.download", { file: issued.fileName })}
            </Button>
          )}
          <Button htmlType="submit" type="primary">
            {t("action.close")}
          </Button>
        </div>
      </form>
    </dialog>
  );
}
