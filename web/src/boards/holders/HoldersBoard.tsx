// Who has the GPUs? Every pod that holds one, whatever made it: alone, or together by owner, leaf, user or namespace.
import { useMemo } from "react";
import { useHolderGroups, useHolders } from "../../api/queries";
import type { Holder, HolderGroup } from "../../api/types";
import { FIRST_JOB } from "../../commands/commands";
import { useWords } from "../../i18n/locale";
import { statusWord } from "../../parts/Status";
import { Choices } from "../../parts/Choices";
import { Command } from "../../parts/Copy";
import { PageHead } from "../../parts/PageHead";
import { Panel } from "../../parts/Panel";
import { SidePanel } from "../../parts/SidePanel";
import { Answered, Bones, Empty, FailedRefresh, Warnings } from "../../parts/States";
import { navigate } from "../../router/router";
import { parsePaging, parseSort, pick, renderSort } from "../../router/query";
import { useQueryState } from "../../router/usequery";
import { type Column, isShown, useTableView } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { Choice, SearchFilter } from "../../table/Filters";
import { BeyondLastPage, TableFoot, TableTools } from "../../table/TableTools";
import { groupColumns, groupKey, holderColumns, holderKey, within } from "./columns";
import { HolderFacts } from "./HolderFacts";

const FILTERS = ["namespace", "kind", "user", "leaf", "node", "status", "owner", "q"] as const;
const ASKED = [...FILTERS, "sort", "page", "size"] as const;
/** Asked for the choices of the filters alone. */
const ONE = new URLSearchParams({ size: "1" });
const GROUPINGS = ["owner", "user", "leaf", "namespace"] as const;

export function HoldersBoard() {
  const { t } = useWords();
  const [params, set] = useQueryState();
  const by = GROUPINGS.find((each) => each === params.get("by")) ?? null;
  const asking = useMemo(() => pick(params, ASKED), [params]);
  const pods = useHolders(asking, by === null);
  const grouping = useMemo(() => new URLSearchParams([...asking, ["by", by ?? "owner"]]), [asking, by]);
  const groups = useHolderGroups(grouping, by !== null);
  const asked = by === null ? pods : groups;
  const facets = useHolders(ONE).data?.facets;
  const open = params.get("open");
  const opened = pods.data?.items.find((row) => holderKey(row) === open);
  const choice = (name: string, label: string, width: number, nameOf?: (word: string) => string) => (
    <Choice name={name} label={label} choices={facets?.[name] ?? []} params={params} set={set} width={width} {...(nameOf && { nameOf })} />
  );
  return (
    <main className="page" data-testid="page-holders">
      <PageHead title={t("title.holders")} answer={asked.data} onRefresh={() => void asked.refetch()} />
      <div className="filters">
        <Choices
          name="by"
          label={t("holders.by")}
          value={by ?? "pod"}
          choices={["pod", ...GROUPINGS].map((each) => ({ value: each, word: t(`holders.by.${each as "pod"}`) }))}
          onChoose={(each) => set({ by: each === "pod" ? null : each, page: null, sort: null, open: null })}
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
      {by === null ? <Pods asked={pods} asking={asking} open={open} /> : <Groups asked={groups} asking={grouping} by={by} />}
      {open && (
        <SidePanel title={<span className="mono">{open}</span>} onClose={() => set({ open: null })}>
          {opened ? <HolderFacts holder={opened} /> : pods.data && <Empty why={t("holders.gone", { pod: open })} />}
        </SidePanel>
      )}
    </main>
  );
}

function Pods({ asked, asking, open }: { asked: ReturnType<typeof useHolders>; asking: URLSearchParams; open: string | null }) {
  const { t } = useWords();
  const [, set] = useQueryState();
  return (
    <Rows<Holder>
      name="holders"
      csv="/holders"
      asked={asked}
      asking={asking}
      columns={useMemo(() => holderColumns(t), [t])}
      rowKey={holderKey}
      selected={open}
      onOpen={(row) => set({ open: holderKey(row) }, open ? "replace" : "push")}
    />
  );
}

function Groups({ asked, asking, by }: { asked: ReturnType<typeof useHolderGroups>; asking: URLSearchParams; by: (typeof GROUPINGS)[number] }) {
  const { t } = useWords();
  return (
    <Rows<HolderGroup> name={`holders-${by}`} csv="/holders/groups" asked={asked} asking={asking} columns={useMemo(() => groupColumns(by, t), [by, t])} rowKey={groupKey} onOpen={(row) => navigate(`/gpus${within(by, row)}`)} />
  );
}

interface RowsProps<Row> {
  name: string;
  csv: string;
  asked: { data: { items: readonly Row[]; total: number } | undefined; error: Error | null; refetch: () => unknown };
  asking: URLSearchParams;
  columns: readonly Column<Row>[];
  rowKey: (row: Row) => string;
  selected?: string | null;
  onOpen: (row: Row) => void;
}

function Rows<Row>({ name, csv, asked, asking, columns, rowKey, selected, onOpen }: RowsProps<Row>) {
  const { t } = useWords();
  const [, set] = useQueryState();
  const view = useTableView(name);
  const paging = parsePaging(asking);
  const filtered = FILTERS.some((key) => asking.has(key));
  const clear = () => set(Object.fromEntries([...FILTERS, "page"].map((key) => [key, null])));
  return (
    <Panel slug="holders" title={t("title.holders")} tools={<TableTools view={view} columns={columns} csv={{ path: csv, params: asking }} command={csv === "/holders" ? "holders" : "groups"} />} flush>
      <Answered asked={asked} bones={<Bones lines={10} />}>
        {(list) => {
          if (list.total === 0 && filtered)
            return (
              <Empty why={t("holders.noneMatch")}>
                <div className="actions">
                  <button type="button" className="link" onClick={clear}>
                    {t("filter.clear")}
                  </button>
                </div>
              </Empty>
            );
          if (list.total === 0)
            return (
              <Empty why={t("holders.none")}>
                <Command text={FIRST_JOB} />
              </Empty>
            );
          if (list.items.length === 0) return <BeyondLastPage page={paging.page} set={set} />;
          return (
            <>
              <DataTable
                name={name}
                caption={t("title.holders")}
                columns={columns.filter((c) => isShown(c, view))}
                rows={list.items}
                rowKey={rowKey}
                density={view.density}
                sort={parseSort(asking.get("sort"))}
                onSort={(sort) => set({ sort: renderSort(sort), page: null })}
                {...(selected === undefined ? {} : { selected })}
                onOpen={onOpen}
                offset={(paging.page - 1) * paging.size}
                total={list.total}
              />
              <TableFoot total={list.total} paging={paging} set={set} />
            </>
          );
        }}
      </Answered>
    </Panel>
  );
}
