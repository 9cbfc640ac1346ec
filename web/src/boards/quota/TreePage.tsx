// The quota tree: bounds and use of every node. "What if" changes numbers in thought; an administrator who signed in edits the tree.
import { useMe, useQuotaTree } from "../../api/queries";
import { useWords } from "../../i18n/locale";
import { PageHead } from "../../parts/PageHead";
import { Answered, Bones, FailedRefresh, Warnings } from "../../parts/States";
import { Link } from "../../router/Link";
import { useQueryState } from "../../router/usequery";
import { Choice, SearchFilter } from "../../table/Filters";
import { TreeEditor } from "./edit/TreeEditor";
import { TreeGrid } from "./TreeGrid";

export function TreePage() {
  const { t } = useWords();
  const [params, set] = useQueryState();
  const asked = useQuotaTree();
  const me = useMe().data;
  const isAdmin = me?.user.role !== "researcher";
  const isAsking = isAdmin && params.get("whatif") === "1";
  const mayEdit = me !== undefined && me.way !== "none" && me.user.role === "admin" && Boolean(asked.data?.treeVersion);
  const isEditing = mayEdit && params.get("edit") === "1";
  const above = <Link to="/quota">{t("title.quota")}</Link>;
  return (
    <main className="page" data-testid="page-quota-tree">
      <PageHead title={t("title.quotaTree")} answer={asked.data} onRefresh={() => void asked.refetch()} before={above} />
      {!isEditing && (
        <div className="filters">
          <Choice name="resource" label={t("col.resource")} choices={asked.data?.resources ?? []} params={params} set={set} width={190} />
          {isAdmin && (
            <button
              type="button"
              className="toggle"
              aria-pressed={isAsking}
              disabled={!asked.data || asked.data.items.length === 0}
              data-testid="action-what-if"
              onClick={() => set({ whatif: isAsking ? null : "1" }, "replace")}
            >
              {t("quota.whatIf")}
            </button>
          )}
          {mayEdit && (
            <button type="button" className="toggle" data-testid="action-edit-tree" onClick={() => set({ edit: "1", whatif: null })}>
              {t(asked.data?.items.length === 0 ? "tree.first" : "tree.edit")}
            </button>
          )}
          <div className="end">
            <SearchFilter params={params} set={set} placeholder={t("quota.searchTree")} />
          </div>
        </div>
      )}
      <Warnings of={[asked.data?.warnings]} />
      <FailedRefresh asked={[asked]} />
      <Answered asked={asked} bones={<Bones lines={10} />}>
        {(page) => (isEditing ? <TreeEditor page={page} onDone={() => set({ edit: null })} /> : <TreeGrid page={page} chosen={params.getAll("resource")} search={params.get("q") ?? ""} isAsking={isAsking} faults />)}
      </Answered>
    </main>
  );
}
