// A new group on a leaf, or changes of one: its name and its users.
import { useState } from "react";
import { usePreview, useQuotaTree, useUsers, useWrite, type WriteOrder } from "../../api/queries";
import type { GroupRow } from "../../api/types";
import { shown } from "../../format/shown";
import { useWords } from "../../i18n/locale";
import { allFaults, Conflict, Faults, faultsOf, Field, FormDialog, presentOf } from "../../parts/FormDialog";
import { useLate } from "../../parts/useLate";

const EVERY_USER = new URLSearchParams({ size: "500" });

export function GroupForm({ group, onClose }: { group?: GroupRow; onClose: () => void }) {
  const { t } = useWords();
  const [name, setName] = useState(group?.groupName ?? "");
  const [leaf, setLeaf] = useState(group?.leaf ?? "");
  const [users, setUsers] = useState<readonly string[]>(group?.users ?? []);
  const [version, setVersion] = useState(group?.version);
  const write = useWrite<GroupRow>();
  const known = useUsers(EVERY_USER).data?.items ?? [];
  const nodes = useQuotaTree().data?.items ?? [];
  const leaves = nodes.filter((node) => node.isLeaf).map((node) => node.path);
  const body = group ? { groupName: name, users } : { groupName: name, leaf, users };
  const order: WriteOrder = group ? { method: "PUT", path: `/groups/${encodeURIComponent(group.name)}`, body, version } : { method: "POST", path: "/groups", body };
  const isReady = name.trim() !== "" && leaf !== "";
  const asked = JSON.stringify(order);
  const isStill = useLate(asked) === asked;
  const preview = usePreview(isReady && isStill ? order : null);
  const faults = allFaults(write.error, isReady ? preview.data : undefined);
  const toggle = (user: string) => setUsers(users.includes(user) ? users.filter((each) => each !== user) : [...users, user]);
  const error = write.error ?? preview.error;
  const present = presentOf<GroupRow>(error);
  return (
    <FormDialog
      title={group ? t("groups.change", { group: group.name }) : t("groups.new")}
      word={t(group ? "form.save" : "form.create")}
      isReady={isReady}
      isBusy={write.isPending}
      error={error}
      preview={isReady ? preview.data : undefined}
      testId="group-form"
      onSubmit={() => write.mutate(order, { onSuccess: onClose })}
      onClose={onClose}
    >
      <Field label={t("groups.name")} faults={faultsOf(faults, "groupName")}>
        <input type="text" value={name} maxLength={63} onChange={(event) => setName(event.target.value)} data-testid="group-name" />
      </Field>
      <Field label={t("groups.leaf")} hint={t("groups.leafHint")} faults={faultsOf(faults, "leaf")}>
        {group ? (
          <span className="mono">{shown(group.leaf)}</span>
        ) : (
          <select value={leaf} onChange={(event) => setLeaf(event.target.value)} data-testid="group-leaf">
            <option value="">—</option>
            {leaves.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        )}
      </Field>
      <Field label={t("groups.users")} faults={faultsOf(faults, "users")} isOne={false}>
        {known.length === 0 ? (
          <p className="dim">{t("users.none")}</p>
        ) : (
          <div className="form-checks">
            {known.map((user) => (
              <label key={user.id}>
                <input type="checkbox" checked={users.includes(user.id)} onChange={() => toggle(user.id)} data-testid={`group-user-${user.id}`} />
                <span className="mono">{shown(user.id)}</span> <span className="dim">{shown(user.userName)}</span>
              </label>
            ))}
          </div>
        )}
      </Field>
      <Faults of={faults.filter(({ path }) => !/^(groupName|leaf|users)\b/.test(path))} />
      {present && (
        <Conflict
          present={`${present.groupName}; ${present.users.join(", ") || "—"}`}
          onOverwrite={() => {
            setVersion(present.version);
            write.reset();
          }}
        />
      )}
    </FormDialog>
  );
}
