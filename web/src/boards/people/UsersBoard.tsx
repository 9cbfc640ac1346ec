// Users: who may sign in, in which groups, with which rights. Administrators make, change and delete them here.
import { Button } from "antd";
import { useMemo, useState } from "react";
import { useUsers } from "../../api/queries";
import type { UserRow } from "../../api/types";
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
import { stateWord, whenWord } from "./words";
import { UserFacts } from "./UserFacts";
import { UserForm } from "./UserForm";

const FILTERS = ["group", "role", "state", "namespace", "q"] as const;
const ASKED = [...FILTERS, "sort"] as const;

export function UsersBoard() {
  const words = useWords();
  const { t } = words;
  const [params, set] = useQueryState();
  const asking = useMemo(() => listQuery(params, ASKED), [params]);
  const asked = useKept(useUsers(asking), asking);
  const facets = asked.data?.facets;
  const columns = useMemo(() => userColumns(words), [words]);
  const [isNew, setNew] = useState(false);
  const open = params.get("open");
  const choice = (name: string, label: string, width: number, nameOf?: (word: string) => string) => (
    <Choice name={name} label={label} choices={facets?.[name] ?? []} params={params} set={set} width={width} {...(nameOf && { nameOf })} />
  );
  return (
    <main className="page" data-testid="page-users">
      <PageHead title={t("title.users")} answer={asked.data} onRefresh={() => void asked.refetch()} />
      <div className="filters">
        {choice("group", t("users.group"), 140)}
        {choice("role", t("users.type"), 130, (word) => t(word === "admin" ? "role.admin" : "role.researcher"))}
        {choice("state", t("users.state"), 120, (word) => stateWord(word, words))}
        {choice("namespace", t("col.namespace"), 140)}
        <Button type="primary" onClick={() => setNew(true)} data-testid="action-new-user">
          {t("users.new")}
        </Button>
        <div className="end">
          <SearchFilter params={params} set={set} placeholder={t("users.search")} />
        </div>
      </div>
      <FailedRefresh asked={[asked]} />
      <ListTable<UserRow>
        name="users"
        slug="users"
        title={t("title.users")}
        path="/users"
        command="users"
        asked={asked}
        asking={asked.shown}
        filters={FILTERS}
        columns={columns}
        rowKey={(user) => user.id}
        selected={open}
        onOpen={(user) => set({ open: user.id }, open ? "replace" : "push")}
        noneMatch={t("users.noneMatch")}
        none={<Empty why={t("users.none")} />}
      />
      {open && <OpenUser id={open} onClose={() => set({ open: null })} />}
      {isNew && <UserForm onClose={() => setNew(false)} />}
    </main>
  );
}

function OpenUser({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useWords();
  const asked = useUsers(useMemo(() => new URLSearchParams({ q: id, size: "500" }), [id]));
  return (
    <SidePanel name={id} onClose={onClose}>
      <Answered asked={asked} bones={<Bones lines={8} />}>
        {({ items }) => {
          const user = items.find((each) => each.id === id);
          return user ? <UserFacts user={user} onGone={onClose} /> : <Empty why={t("users.gone", { user: id })} />;
        }}
      </Answered>
    </SidePanel>
  );
}

const some = (names: readonly string[]): string => (names.length > 0 ? names.join(", ") : "—");

function userColumns(words: Words): readonly Column<UserRow>[] {
  const { t } = words;
  return [
    { key: "userName", head: t("users.name"), width: 150, fixed: true, title: (user) => user.userName, cell: (user) => user.userName },
    { key: "id", head: t("users.id"), width: 120, mono: true, cell: (user) => user.id },
    { key: "groups", head: t("users.group"), width: 140, mono: true, unsortable: true, title: (user) => some(user.groups), cell: (user) => some(user.groups) },
    { key: "role", head: t("users.type"), width: 110, cell: (user) => t(user.role === "admin" ? "role.admin" : "role.researcher") },
    { key: "roles", head: t("users.roles"), width: 200, mono: true, unsortable: true, title: (user) => some(user.roles), cell: (user) => some(user.roles) },
    { key: "clusterRoles", head: t("users.clusterRoles"), width: 190, mono: true, unsortable: true, optional: true, title: (user) => some(user.clusterRoles), cell: (user) => some(user.clusterRoles) },
    { key: "namespaces", head: t("users.namespaces"), width: 140, mono: true, unsortable: true, title: (user) => some(user.namespaces), cell: (user) => some(user.namespaces) },
    { key: "state", head: t("users.state"), width: 110, title: (user) => user.message, cell: (user) => stateWord(user.state, words) },
    { key: "createdAt", head: t("users.created"), width: 140, cell: (user) => whenWord(user.createdAt) },
  ];
}
