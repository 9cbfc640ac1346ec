// Operations: work on the cluster that takes several writes. What runs, and how earlier ones ended.
import { Button } from "antd";
import { useMemo } from "react";
import { useOperationHistory, useOperations } from "../../api/queries";
import type { EndedOperation, ListedOperation } from "../../api/types";
import { shown } from "../../format/shown";
import { useWords, type Words } from "../../i18n/locale";
import { Ago } from "../../parts/Ago";
import { PageHead } from "../../parts/PageHead";
import { Panel } from "../../parts/Panel";
import { Status } from "../../parts/Status";
import { Answered, Bones, Empty, FailedRefresh, Warnings } from "../../parts/States";
import { Link } from "../../router/Link";
import { listQuery } from "../../router/query";
import { navigate } from "../../router/router";
import { useQueryState } from "../../router/usequery";
import { Choice, SearchFilter } from "../../table/Filters";
import type { Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { ListTable } from "../../table/ListTable";
import { OlderFoot } from "../../table/TableTools";
import { useKept } from "../../table/useKept";
import { kindWord, stateWord, subjectWord } from "./words";

const FILTERS = ["kind", "state", "subject", "user", "q"] as const;
const ASKED = [...FILTERS, "sort"] as const;

export function OperationsBoard() {
  const words = useWords();
  const { t } = words;
  const [params, set] = useQueryState();
  const asking = useMemo(() => listQuery(params, ASKED), [params]);
  const asked = useKept(useOperations(asking), asking);
  const facets = asked.data?.facets;
  const columns = useMemo(() => operationColumns(words), [words]);
  const choice = (name: string, label: string, width: number, nameOf?: (word: string) => string) => (
    <Choice name={name} label={label} choices={facets?.[name] ?? []} params={params} set={set} width={width} {...(nameOf && { nameOf })} />
  );
  return (
    <main className="page" data-testid="page-operations">
      <PageHead title={t("title.operations")} answer={asked.data} onRefresh={() => void asked.refetch()} />
      <div className="filters">
        {choice("kind", t("operations.kind"), 140, (word) => kindWord(word, words))}
        {choice("state", t("operations.state"), 116, (word) => stateWord(word, words))}
        {choice("user", t("operations.by"), 116)}
        <div className="end">
          <SearchFilter params={params} set={set} placeholder={t("operations.search")} />
        </div>
      </div>
      <Warnings of={[asked.data?.warnings]} />
      <FailedRefresh asked={[asked]} />
      <ListTable<ListedOperation>
        name="operations"
        slug="operations"
        title={t("title.operations")}
        path="/operations"
        command="operations"
        asked={asked}
        asking={asked.shown}
        filters={FILTERS}
        columns={columns}
        rowKey={(operation) => operation.id}
        onOpen={(operation) => navigate(`/operations/${encodeURIComponent(operation.id)}`)}
        noneMatch={t("operations.noneMatch")}
        none={
          <Empty why={t("operations.none")}>
            <Link to="/datasets">{t("board.datasets")}</Link>
          </Empty>
        }
      />
      <Earlier />
    </main>
  );
}

/** Ended operations whose records are gone; read when they are asked for. `earlier`: "" = the newest, else from where the page goes on. */
function Earlier() {
  const words = useWords();
  const { t } = words;
  const [params, set] = useQueryState();
  const from = params.get("earlier");
  const asked = useOperationHistory(useMemo(() => new URLSearchParams(from && from !== NEWEST ? { before: from } : {}), [from]), from !== null);
  const columns = useMemo(() => earlierColumns(words), [words]);
  if (from === null)
    return (
      <p className="write-acts">
        <Button onClick={() => set({ earlier: NEWEST })} data-testid="action-earlier">
          {t("operations.showEarlier")}
        </Button>
      </p>
    );
  return (
    <Panel slug="earlier-operations" title={t("operations.earlier")} flush>
      <Answered asked={asked} bones={<Bones lines={6} />}>
        {(page) => (
          <>
            {page.items.length === 0 ? (
              <Empty why={t("operations.noneEarlier")} />
            ) : (
              <DataTable name="earlier-operations" caption={t("operations.earlier")} columns={columns} rows={page.items} rowKey={(row) => row.id} total={page.items.length} onOpen={(row) => navigate(`/operations/${encodeURIComponent(row.id)}`)} walkable />
            )}
            <OlderFoot onNewest={from !== NEWEST ? () => set({ earlier: NEWEST }) : undefined} onOlder={page.before ? () => set({ earlier: page.before }) : undefined} />
          </>
        )}
      </Answered>
    </Panel>
  );
}

const NEWEST = "newest";

function earlierColumns(words: Words): readonly Column<EndedOperation>[] {
  const { t } = words;
  const plain = { unsortable: true } as const;
  return [
    { ...plain, key: "id", head: t("operations.id"), width: 120, mono: true, fixed: true, cell: (o) => o.id },
    { ...plain, key: "state", head: t("operations.state"), width: 110, title: (o) => o.message, cell: (o) => <Status word={o.state} /> },
    { ...plain, key: "kind", head: t("operations.kind"), width: 130, cell: (o) => kindWord(o.kind, words) },
    { ...plain, key: "subject", head: t("operations.subject"), width: 200, mono: true, title: (o) => subjectWord(o.subject), cell: (o) => subjectWord(o.subject) },
    { ...plain, key: "message", head: t("operations.message"), width: 240, title: (o) => o.message, cell: (o) => shown(o.message) || "—" },
    { ...plain, key: "createdBy", head: t("operations.by"), width: 100, cell: (o) => o.createdBy || "—" },
    { ...plain, key: "endedAt", head: t("operations.ended"), width: 90, cell: (o) => <Ago at={o.endedAt} /> },
  ];
}

function operationColumns(words: Words): readonly Column<ListedOperation>[] {
  const { t } = words;
  return [
    { key: "id", head: t("operations.id"), width: 120, mono: true, fixed: true, cell: (o) => o.id },
    { key: "state", head: t("operations.state"), width: 110, title: (o) => o.message, cell: (o) => <Status word={o.state} /> },
    { key: "kind", head: t("operations.kind"), width: 130, cell: (o) => kindWord(o.kind, words) },
    { key: "subject", head: t("operations.subject"), width: 200, mono: true, title: (o) => subjectWord(o.subject), cell: (o) => subjectWord(o.subject) },
    { key: "stepsDone", head: t("operations.steps"), width: 76, number: true, cell: (o) => `${o.stepsDone} / ${o.stepsTotal}` },
    { key: "step", head: t("operations.step"), width: 240, title: (o) => o.step, cell: (o) => o.step || "—" },
    { key: "createdBy", head: t("operations.by"), width: 100, cell: (o) => o.createdBy },
    { key: "createdAt", head: t("operations.started"), width: 90, cell: (o) => <Ago at={o.createdAt} /> },
    { key: "updatedAt", head: t("operations.updated"), width: 90, optional: true, cell: (o) => <Ago at={o.updatedAt} /> },
  ];
}
