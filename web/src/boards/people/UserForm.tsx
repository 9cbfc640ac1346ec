// A new user, or changes of one. The server's preview lists the bindings that follow, and what is wrong.
import { useState } from "react";
import { useGroups, usePreview, useWrite, type WriteOrder } from "../../api/queries";
import type { UserRow } from "../../api/types";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { allFaults, Conflict, Faults, faultsOf, Field, FormDialog, presentOf } from "../../parts/FormDialog";
import { useLate } from "../../parts/useLate";
import { PLAIN_ID } from "./words";

const EVERY_GROUP = new URLSearchParams({ size: "500" });

export function UserForm({ user, onClose }: { user?: UserRow; onClose: () => void }) {
  const { t } = useWords();
  const [name, setName] = useState(user?.userName ?? "");
  const [role, setRole] = useState(user?.role ?? "researcher");
  const [groups, setGroups] = useState<readonly string[]>(user?.groups ?? []);
  const [uid, setUid] = useState(user?.external?.uid ?? "");
  const [version, setVersion] = useState(user?.version);
  const write = useWrite<UserRow>();
  const known = useGroups(EVERY_GROUP).data?.items ?? [];
  const external = uid.trim() ? { authType: user?.external?.authType || "oidc", uid: uid.trim(), name: user?.external?.name ?? "" } : null;
  const body = { userName: name, role, groups, external, ...(user && { disabled: user.disabled }) };
  const order: WriteOrder = user ? { method: "PUT", path: `/users/${encodeURIComponent(user.id)}`, body, version } : { method: "POST", path: "/users", body };
  const asked = JSON.stringify(order);
  const isStill = useLate(asked) === asked;
  const preview = usePreview(name.trim() !== "" && isStill ? order : null);
  const faults = allFaults(write.error, name.trim() === "" ? undefined : preview.data);
  const toggle = (group: string) => setGroups(groups.includes(group) ? groups.filter((each) => each !== group) : [...groups, group]);
  const names = [...new Set([...known.map((group) => group.name), ...groups])];
  const error = write.error ?? preview.error;
  const present = presentOf<UserRow>(error);
  return (
    <FormDialog
      title={user ? t("users.change", { user: user.id }) : t("users.new")}
      word={t(user ? "form.save" : "form.create")}
      isReady={name.trim() !== ""}
      isBusy={write.isPending}
      error={error}
      preview={name.trim() === "" ? undefined : preview.data}
      testId="user-form"
      onSubmit={() => write.mutate(order, { onSuccess: onClose })}
      onClose={onClose}
    >
      <Field label={t("users.name")} {...(!user && { hint: t("users.idHint", { id: PLAIN_ID(name) || "—" }) })} faults={faultsOf(faults, "userName")}>
        <input type="text" value={name} maxLength={253} onChange={(event) => setName(event.target.value)} data-testid="user-name" />
      </Field>
      <Field label={t("users.type")} faults={faultsOf(faults, "role")} isOne={false}>
        <div className="form-row">
          {(["researcher", "admin"] as const).map((each) => (
            <label key={each}>
              <input type="radio" name="role" checked={role === each} onChange={() => setRole(each)} data-testid={`user-role-${each}`} />
              {t(each === "admin" ? "role.admin" : "role.researcher")}
            </label>
          ))}
        </div>
      </Field>
      <Field label={t("users.group")} hint={t("users.groupHint")} faults={faultsOf(faults, "groups")} isOne={false}>
        {names.length === 0 ? (
          <p className="dim">{t("groups.none")}</p>
        ) : (
          <div className="form-checks">
            {names.map((group) => (
              <label key={group}>
                <input type="checkbox" checked={groups.includes(group)} onChange={() => toggle(group)} data-testid={`user-group-${group}`} />
                <span className="mono">{shown(group)}</span> <span className="dim mono">{shown(known.find((each) => each.name === group)?.leaf ?? "")}</span>
              </label>
            ))}
          </div>
        )}
      </Field>
      <Field label={t("users.external")} hint={t("users.externalHint")} faults={faultsOf(faults, "external")}>
        <input type="text" className="mono" value={uid} maxLength={253} onChange={(event) => setUid(event.target.value)} />
      </Field>
      <Faults of={faults.filter(({ path }) => !/^(userName|role|groups|external)\b/.test(path))} />
      {present && (
        <Conflict
          present={`${present.userName}; ${present.groups.join(", ") || "—"}`}
          onOverwrite={() => {
            setVersion(present.version);
            write.reset();
          }}
        />
      )}
    </FormDialog>
  );
}
