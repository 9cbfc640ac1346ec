// Data that jobs mount: claims of volumes, and the data sets of Fluid that cache them. Administrators add, accelerate, preheat, scale and un-accelerate here.
import { Button } from "antd";
import { useMemo, useState } from "react";
import { useDatasets } from "../../api/queries";
import type { DataSetRow } from "../../api/types";
import { useWords } from "../../i18n/locale";
import { PageHead } from "../../parts/PageHead";
import { SidePanel } from "../../parts/SidePanel";
import { statusWord } from "../../parts/Status";
import { Answered, Bones, Empty, FailedRefresh, Warnings } from "../../parts/States";
import { listQuery } from "../../router/query";
import { useQueryState } from "../../router/usequery";
import { Choice, SearchFilter } from "../../table/Filters";
import { ListTable } from "../../table/ListTable";
import { useKept } from "../../table/useKept";
import { AddForm } from "./AddForm";
import { DatasetFacts } from "./DatasetFacts";
import { datasetColumns, datasetKey } from "./columns";
import { useMayWrite } from "./useMayWrite";

const FILTERS = ["namespace", "accelerated", "status", "q"] as const;
const ASKED = [...FILTERS, "sort"] as const;

export function DatasetsBoard() {
  const words = useWords();
  const { t } = words;
  const [params, set] = useQueryState();
  const asking = useMemo(() => listQuery(params, ASKED), [params]);
  const asked = useKept(useDatasets(asking), asking);
  const facets = asked.data?.facets;
  const columns = useMemo(() => datasetColumns(words), [words]);
  const open = params.get("open");
  const mayWrite = useMayWrite();
  const [isAdding, setAdding] = useState(false);
  const chosen = params.getAll("namespace");
  const choice = (name: string, label: string, width: number, nameOf?: (word: string) => string) => (
    <Choice name={name} label={label} choices={facets?.[name] ?? []} params={params} set={set} width={width} {...(nameOf && { nameOf })} />
  );
  return (
    <main className="page" data-testid="page-datasets">
      <PageHead title={t("title.datasets")} answer={asked.data} onRefresh={() => void asked.refetch()} />
      <div className="filters">
        {choice("namespace", t("col.namespace"), 140)}
        {choice("accelerated", t("datasets.accelerated"), 156, (word) => t(word === "yes" ? "datasets.yes" : "datasets.no"))}
        {choice("status", t("col.status"), 116, (word) => statusWord(word, t))}
        {mayWrite && (
          <Button type="primary" onClick={() => setAdding(true)} data-testid="action-add">
            {t("datasets.add")}
          </Button>
        )}
        <div className="end">
          <SearchFilter params={params} set={set} placeholder={t("datasets.search")} />
        </div>
      </div>
      <Warnings of={[asked.data?.warnings]} />
      <FailedRefresh asked={[asked]} />
      <ListTable<DataSetRow>
        name="datasets"
        slug="datasets"
        title={t("title.datasets")}
        path="/datasets"
        command="datasets"
        asked={asked}
        asking={asked.shown}
        filters={FILTERS}
        columns={columns}
        rowKey={datasetKey}
        selected={open}
        onOpen={(row) => set({ open: datasetKey(row) }, open ? "replace" : "push")}
        noneMatch={t("datasets.noneMatch")}
        none={<Empty why={t("datasets.none")}>{t("datasets.noneNext")}</Empty>}
      />
      {isAdding && <AddForm namespace={chosen.length === 1 ? (chosen[0] ?? "") : ""} namespaces={facets?.["namespace"] ?? []} onClose={() => setAdding(false)} />}
      {open && <OpenRow id={open} onClose={() => set({ open: null })} />}
    </main>
  );
}

/** Filters and pages leave rows off; the row whose panel is open is asked for by its name. */
function OpenRow({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useWords();
  const [namespace = "", kind = "", name = ""] = id.split("/");
  const asked = useDatasets(useMemo(() => new URLSearchParams({ namespace, q: name, size: "500" }), [namespace, name]));
  const isSet = kind === "Dataset";
  return (
    <SidePanel name={name} of={{ kind: isSet ? "dataset" : "claim", namespace, name }} onClose={onClose}>
      <Answered asked={asked} bones={<Bones lines={8} />}>
        {({ items }) => {
          const row = items.find((each) => datasetKey(each) === id);
          return row ? <DatasetFacts row={row} /> : <Empty why={t("datasets.gone", { name: `${namespace}/${name}` })} />;
        }}
      </Answered>
    </SidePanel>
  );
}
