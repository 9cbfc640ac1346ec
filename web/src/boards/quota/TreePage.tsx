// The quota tree: bounds and use of every node. "What if" changes numbers in thought and shows who would be admitted and who evicted; nothing is written.
import { useMe, useQuotaTree } from "../../api/queries";
import { useWords } from "../../i18n/locale";
import { PageHead } from "../../parts/PageHead";
import { Answered, Bones, FailedRefresh, Warnings } from "../../parts/States";
import { Link } from "../../router/Link";
import { useQueryState } from "../../router/usequery";
import { Choice, SearchFilter } from "../../table/Filters";
import { TreeGrid } from "./TreeGrid";

export function TreePage() {
  const { t } = useWords();
  const [params, set] = useQueryState();
  const asked = useQuotaTree();
  const isAdmin = useMe().data?.user.role !== "researcher";
  const isAsking = isAdmin && params.get("whatif") === "1";
  const above = <Link to="/quota">{t("title.quota")}</Link>;
  return (
    <main className="page" data-testid="page-quota-tree">
      <PageHead title={t("title.quotaTree")} answer={asked.data} onRefresh={() => void asked.refetch()} before={above} />
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
        <div className="end">
          <SearchFilter params={params} set={set} placeholder={t("quota.searchTree")} />
        </div>
      </div>
      <Warnings of={[asked.data?.warnings]} />
      <FailedRefresh asked={[asked]} />
      <Answered asked={asked} bones={<Bones lines={10} />}>
        {(page) => <TreeGrid page={page} chosen={params.getAll("resource")} search={params.get("q") ?? ""} isAsking={isAsking} faults />}
      </Answered>
    </main>
  );
}
