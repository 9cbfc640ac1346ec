// Who has the GPUs? Every pod that holds one, whatever made it: alone, or together by owner, leaf, user or namespace.
import { useMemo } from "react";
import { useHolder, useHolderGroups, useHolders } from "../../api/queries";
import type { Holder, HolderList } from "../../api/types";
import { OfPage } from "../../charts/OfPage";
import { ChartPageProvider } from "../../charts/page";
import { useWords } from "../../i18n/locale";
import { statusWord } from "../../parts/Status";
import { Choices } from "../../parts/Choices";
import { PageHead } from "../../parts/PageHead";
import { SidePanel } from "../../parts/SidePanel";
import { Answered, Bones, Empty, FailedRefresh, Warnings } from "../../parts/States";
import { listQuery } from "../../router/query";
import { useQueryState } from "../../router/usequery";
import { Choice, SearchFilter } from "../../table/Filters";
import { type Kept, useKept } from "../../table/useKept";
import { charted } from "./charted";
import { holderColumns, holderKey } from "./columns";
import { Groups } from "./Groups";
import { HolderCharts } from "./HolderCharts";
import { HolderFacts } from "./HolderFacts";
import { FILTERS, Rows } from "./Rows";

const ASKED = [...FILTERS, "sort"] as const;
/** Asked for the choices of the filters alone. */
const ONE = new URLSearchParams({ size: "1" });
const GROUPINGS = ["owner", "user", "leaf", "namespace"] as const;

export function HoldersBoard() {
  const { t } = useWords();
  const [params, set] = useQueryState();
  const by = GROUPINGS.find((each) => each === params.get("by")) ?? null;
  const asking = useMemo(() => listQuery(params, ASKED), [params]);
  const pods = useKept(useHolders(asking, by === null), asking);
  const grouping = useMemo(() => new URLSearchParams([...asking, ["by", by ?? "owner"]]), [asking, by]);
  const groups = useKept(useHolderGroups(grouping, by !== null), grouping);
  const asked = by === null ? pods : groups;
  const facets = useHolders(ONE).data?.facets;
  const shown = useMemo(() => charted(pods.shown, pods.data?.items ?? []), [pods.shown, pods.data]);
  const open = params.get("open");
  // Filters and pages leave rows off; whose panel is open is asked for by name.
  const named = useHolder(open);
  const opened = named.data ?? pods.data?.items.find((row) => holderKey(row) === open);
  const choice = (name: string, label: string, width: number, nameOf?: (word: string) => string) => (
    <Choice name={name} label={label} choices={facets?.[name] ?? []} params={params} set={set} width={width} {...(nameOf && { nameOf })} />
  );
  return (
    <ChartPageProvider fallback="30m">
      <main className="page" data-testid="page-holders">
        <PageHead title={t("title.holders")} answer={asked.data} onRefresh={() => void asked.refetch()} />
        <div className="filters">
          <Choices
            name="by"
            label={t("holders.by")}
            value={by ?? "pod"}
            choices={["pod", ...GROUPINGS].map((each) => ({ value: each, word: t(`holders.by.${each as "pod"}`) }))}
            onChoose={(each) => set({ by: each === "pod" ? null : each, page: null, sort: null, open: null, unfold: null })}
          />
          {choice("namespace", t("col.namespace"), 140)}
          {choice("kind", t("holders.kind"), 116)}
          {choice("user", t("col.user"), 104)}
          {choice("leaf", t("col.quotaPath"), 128)}
          {choice("status", t("col.status"), 116, (word) => statusWord(word, t))}
          <div className="end">
            <SearchFilter params={params} set={set} placeholder={t("holders.search")} />
          </div>
        </div>
        <Warnings of={[asked.data?.warnings]} />
        <FailedRefresh asked={[asked]} />
        {by === null ? <Pods asked={pods} asking={pods.shown} open={open} /> : <Groups asked={groups} asking={groups.shown} by={by} />}
        {by === null && pods.data && <OfPage charted={shown} total={pods.data.total} />}
        {by === null && pods.data && pods.data.items.length > 0 && <HolderCharts filters={shown.filters} />}
        {open && (
          <SidePanel name={open} {...(opened && { of: { kind: "holder", namespace: opened.namespace, name: opened.name, job: opened.job } })} onClose={() => set({ open: null })}>
            {opened ? (
              <HolderFacts holder={opened} />
            ) : (
              <Answered asked={named} bones={<Bones lines={8} />}>
                {() => <Empty why={t("holders.gone", { pod: open })} />}
              </Answered>
            )}
          </SidePanel>
        )}
      </main>
    </ChartPageProvider>
  );
}

function Pods({ asked, asking, open }: { asked: Kept<HolderList>; asking: URLSearchParams; open: string | null }) {
  const { t } = useWords();
  const [, set] = useQueryState();
  const onOpen = (row: Holder) => set({ open: holderKey(row) }, open ? "replace" : "push");
  return <Rows<Holder> name="holders" path="/holders" command="holders" asked={asked} asking={asking} columns={useMemo(() => holderColumns(t), [t])} rowKey={holderKey} selected={open} onOpen={onOpen} />;
}
