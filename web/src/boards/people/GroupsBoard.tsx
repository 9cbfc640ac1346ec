// User groups: each is one leaf of the quota tree, and the users who work in its namespaces.
import { Button } from "antd";
import { useMemo, useState } from "react";
import { useGroups } from "../../api/queries";
import type { GroupRow } from "../../api/types";
import { count } from "../../format/format";
import { shown } from "../../format/shown";
import { useWords, type Words } from "../../i18n/locale";
import { PageHead } from "../../parts/PageHead";
import { SidePanel } from "../../parts/SidePanel";
import { Answered, Bones, Empty, FailedRefresh } from "../../parts/States";
import { listQuery } from "../../router/query";
import { useQueryState } from "../../router/usequery";
import type { Column } from "../../table/columns";
import { Choice, SearchFilter } from "../../table/Filters";
import { ListTable } from "../../table/ListTable";
import { useKept } from "../../table/useKept";
import { DeleteDialog } from "./DeleteDialog";
import { GroupForm } from "./GroupForm";
import { stateWord, whenWord } from "./words";

const FILTERS = ["leaf", "user", "state", "q"] as const;
const ASKED = [...FILTERS, "sort"] as const;

export function GroupsBoard() {
  const words = useWords();
  const { t } = words;
  const [params, set] = useQueryState();
  const asking = useMemo(() => listQuery(params, ASKED), [params]);
  const asked = useKept(useGroups(asking), asking);
  const facets = asked.data?.facets;
  const columns = useMemo(() => groupColumns(words), [words]);
  const [isNew, setNew] = useState(false);
  const open = params.get("open");
  return (
    <main className="page" data-testid="page-groups">
      <PageHead title={t("title.groups")} answer={asked.data} onRefresh={() => void asked.refetch()} />
      <div className="filters">
        <Choice name="leaf" label={t("groups.leaf")} choices={facets?.["leaf"] ?? []} params={params} set={set} width={180} />
        <Choice name="user" label={t("col.user")} choices={facets?.["user"] ?? []} params={params} set={set} width={130} />
        <Choice name="state" label={t("users.state")} choices={facets?.["state"] ?? []} params={params} set={set} width={130} nameOf={(word) => stateWord(word, words)} />
        <Button type="primary" onClick={() => setNew(true)} data-testid="action-new-group">
          {t("groups.new")}
        </Button>
        <div className="end">
          <SearchFilter params={params} set={set} placeholder={t("groups.search")} />
        </div>
      </div>
      <FailedRefresh asked={[asked]} />
      <ListTable<GroupRow>
        name="user-groups"
        slug="user-groups"
        title={t("title.groups")}
        path="/groups"
        command="userGroups"
        asked={asked}
        asking={asked.shown}
        filters={FILTERS}
        columns={columns}
        rowKey={(group) => group.name}
        selected={open}
        onOpen={(group) => set({ open: group.name }, open ? "replace" : "push")}
        noneMatch={t("groups.noneMatch")}
        none={<Empty why={t("groups.none")} />}
      />
      {open && <OpenGroup name={open} onClose={() => set({ open: null })} />}
      {isNew && <GroupForm onClose={() => setNew(false)} />}
    </main>
  );
}

function OpenGroup({ name, onClose }: { name: string; onClose: () => void }) {
  const { t } = useWords();
  const asked = useGroups(useMemo(() => new URLSearchParams({ q: name, size: "500" }), [name]));
  return (
    <SidePanel name={name} onClose={onClose}>
      <Answered asked={asked} bones={<Bones lines={6} />}>
        {({ items }) => {
          const group = items.find((each) => each.name === name);
          return group ? <GroupFacts group={group} onGone={onClose} /> : <Empty why={t("groups.gone", { group: name })} />;
        }}
      </Answered>
    </SidePanel>
  );
}

function GroupFacts({ group, onGone }: { group: GroupRow; onGone: () => void }) {
  const words = useWords();
  const { t } = words;
  const [dialog, setDialog] = useState<"edit" | "delete" | null>(null);
  const close = () => setDialog(null);
  return (
    <>
      <dl className="facts">
        <dt>{t("groups.name")}</dt>
        <dd>{shown(group.groupName)}</dd>
        <dt>{t("users.state")}</dt>
        <dd>{stateWord(group.state, words)}</dd>
        {group.message && (
          <>
            <dt>{t("users.message")}</dt>
            <dd lang="en">{shown(group.message)}</dd>
          </>
        )}
        <dt>{t("groups.leaf")}</dt>
        <dd className="mono">{shown(group.leaf)}</dd>
        <dt>{t("users.namespaces")}</dt>
        <dd className="mono">{some(group.namespaces)}</dd>
        <dt>{t("groups.users")}</dt>
        <dd className="mono">{some(group.users)}</dd>
        <dt>{t("groups.moreRoles")}</dt>
        <dd className="mono">{some([...group.defaultRoles, ...group.defaultClusterRoles])}</dd>
        <dt>{t("users.created")}</dt>
        <dd>{whenWord(group.createdAt)}</dd>
      </dl>
      <div className="person-tools">
        <Button onClick={() => setDialog("edit")} data-testid="action-edit">
          {t("form.edit")}
        </Button>
        <Button danger onClick={() => setDialog("delete")} data-testid="action-delete">
          {t("form.delete")}
        </Button>
      </div>
      {dialog === "edit" && <GroupForm group={group} onClose={close} />}
      {dialog === "delete" && (
        <DeleteDialog title={t("groups.delete", { group: group.name })} why={t("groups.deleteWhy", { group: group.name })} path={`/groups/${encodeURIComponent(group.name)}`} version={group.version} onClose={close} onDone={onGone} />
      )}
    </>
  );
}

const some = (names: readonly string[]): string => (names.length > 0 ? names.map(shown).join(", ") : "—");

function groupColumns(words: Words): readonly Column<GroupRow>[] {
  const { t } = words;
  return [
    { key: "groupName", head: t("groups.name"), width: 160, fixed: true, cell: (group) => group.groupName },
    { key: "leaf", head: t("groups.leaf"), width: 200, mono: true, title: (group) => group.leaf, cell: (group) => group.leaf },
    { key: "users", head: t("groups.users"), width: 240, mono: true, unsortable: true, title: (group) => group.users.join(", "), cell: (group) => (group.users.length > 0 ? `${count(group.users.length)}: ${group.users.join(", ")}` : "0") },
    { key: "namespaces", head: t("users.namespaces"), width: 170, mono: true, unsortable: true, cell: (group) => group.namespaces.join(", ") || "—" },
    { key: "state", head: t("users.state"), width: 120, title: (group) => group.message, cell: (group) => stateWord(group.state, words) },
    { key: "createdAt", head: t("users.created"), width: 150, cell: (group) => whenWord(group.createdAt) },
  ];
}
