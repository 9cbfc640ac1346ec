// One user: rights as they are, credentials, and what an administrator may do.
import { Button } from "antd";
import { useState } from "react";
import { usePreview, useWrite, type WriteOrder } from "../../api/queries";
import type { UserRow } from "../../api/types";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { Faults, FormDialog } from "../../parts/FormDialog";
import { Credentials } from "./Credentials";
import { DeleteDialog } from "./DeleteDialog";
import { UserForm } from "./UserForm";
import { stateWord, whenWord } from "./words";

const lines = (names: readonly string[]) => (names.length > 0 ? names.map((each) => <div key={each}>{shown(each)}</div>) : "—");

export function UserFacts({ user, onGone }: { user: UserRow; onGone: () => void }) {
  const words = useWords();
  const { t } = words;
  const [dialog, setDialog] = useState<"edit" | "disable" | "delete" | null>(null);
  const close = () => setDialog(null);
  const path = `/users/${encodeURIComponent(user.id)}`;
  return (
    <>
      <dl className="facts">
        <dt>{t("users.name")}</dt>
        <dd>{shown(user.userName)}</dd>
        <dt>{t("users.state")}</dt>
        <dd data-testid="user-state">{stateWord(user.state, words)}</dd>
        {user.message && (
          <>
            <dt>{t("users.message")}</dt>
            <dd lang="en">{shown(user.message)}</dd>
          </>
        )}
        <dt>{t("users.type")}</dt>
        <dd>{t(user.role === "admin" ? "role.admin" : "role.researcher")}</dd>
        <dt>{t("users.group")}</dt>
        <dd className="mono">{lines(user.groups)}</dd>
        <dt>{t("users.roles")}</dt>
        <dd className="mono">{lines(user.roles)}</dd>
        <dt>{t("users.clusterRoles")}</dt>
        <dd className="mono">{lines(user.clusterRoles)}</dd>
        <dt>{t("users.external")}</dt>
        <dd className="mono">{user.external ? shown(`${user.external.authType}:${user.external.uid}`) : "—"}</dd>
        <dt>{t("users.created")}</dt>
        <dd>{whenWord(user.createdAt)}</dd>
      </dl>
      <div className="person-tools">
        <Button onClick={() => setDialog("edit")} data-testid="action-edit">
          {t("form.edit")}
        </Button>
        <Button onClick={() => setDialog("disable")} data-testid="action-disable">
          {t(user.disabled ? "users.enable" : "users.disable")}
        </Button>
        <Button danger onClick={() => setDialog("delete")} data-testid="action-delete">
          {t("form.delete")}
        </Button>
      </div>
      <Credentials path={path} user={user.id} namespaces={user.namespaces} isReady={!user.disabled} />
      {dialog === "edit" && <UserForm user={user} onClose={close} />}
      {dialog === "disable" && <DisableDialog user={user} onClose={close} />}
      {dialog === "delete" && <DeleteDialog title={t("users.delete", { user: user.id })} why={t("users.deleteWhy", { user: user.id })} typed={user.id} path={path} version={user.version} canForce onClose={close} onDone={onGone} />}
    </>
  );
}

function DisableDialog({ user, onClose }: { user: UserRow; onClose: () => void }) {
  const { t } = useWords();
  const write = useWrite<UserRow>();
  const { userName, role, groups, external } = user;
  const order: WriteOrder = { method: "PUT", path: `/users/${encodeURIComponent(user.id)}`, body: { userName, role, groups, external, disabled: !user.disabled }, version: user.version };
  const preview = usePreview(order);
  const title = t(user.disabled ? "users.enableTitle" : "users.disableTitle", { user: user.id });
  return (
    <FormDialog
      title={title}
      word={t(user.disabled ? "users.enable" : "users.disable")}
      isDestructive={!user.disabled}
      isBusy={write.isPending}
      error={write.error ?? preview.error}
      preview={preview.data}
      testId="disable-form"
      onSubmit={() => write.mutate(order, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>{t(user.disabled ? "users.enableWhy" : "users.disableWhy", { user: user.id })}</p>
      {preview.data && !preview.data.valid && <Faults of={preview.data.fields} />}
    </FormDialog>
  );
}
