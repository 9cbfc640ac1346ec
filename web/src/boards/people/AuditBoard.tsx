// The audit: who did what, when, and how it ended. Newest first; older rows on demand.
import { useMemo } from "react";
import { apiAddress } from "../../api/fetch";
import { useAudit } from "../../api/queries";
import type { AuditEntry } from "../../api/types";
import { count } from "../../format/format";
import { useWords, type Words } from "../../i18n/locale";
import { PageHead } from "../../parts/PageHead";
import { Panel } from "../../parts/Panel";
import { Answered, Bones, Empty, FailedRefresh } from "../../parts/States";
import { pick } from "../../router/query";
import { useQueryState } from "../../router/usequery";
import type { Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { Choice, SearchFilter } from "../../table/Filters";
import { OlderFoot } from "../../table/TableTools";
import { whenWord } from "./words";

const FILTERS = ["action", "result", "actor", "q"] as const;
const RESULTS = ["ok", "refused", "failed", "begun"] as const;
const ACTIONS = ["session.begin", "session.end", "users.create", "users.update", "users.delete", "groups.create", "groups.update", "groups.delete", "credentials.create", "credentials.delete"] as const;

export function AuditBoard() {
  const words = useWords();
  const { t } = words;
  const [params, set] = useQueryState();
  const asking = useMemo(() => pick(params, [...FILTERS, "before", "since", "until"]), [params]);
  const asked = useAudit(asking);
  const columns = useMemo(() => auditColumns(words), [words]);
  const file = (form: string) => apiAddress("/audit", new URLSearchParams([...pick(params, [...FILTERS, "since", "until"]), ["format", form]]));
  return (
    <main className="page" data-testid="page-audit">
      <PageHead title={t("title.audit")} answer={undefined} onRefresh={() => void asked.refetch()} />
      <div className="filters">
        <Choice name="action" label={t("audit.action")} choices={ACTIONS} params={params} set={set} width={170} />
        <Choice name="result" label={t("audit.result")} choices={RESULTS} params={params} set={set} width={130} nameOf={(word) => resultWord(word, words)} />
        <div className="end">
          <SearchFilter params={params} set={set} placeholder={t("audit.search")} />
        </div>
      </div>
      <FailedRefresh asked={[asked]} />
      <Panel
        slug="audit"
        title={t("title.audit")}
        note={asked.data ? count(asked.data.total) : undefined}
        tools={
          <>
            <a className="link" href={file("csv")} download>
              CSV
            </a>{" "}
            <a className="link" href={file("jsonl")} download>
              JSON
            </a>
          </>
        }
        flush
      >
        <Answered asked={asked} bones={<Bones lines={10} />}>
          {(page) =>
            page.items.length === 0 ? (
              <Empty why={t("audit.none")} />
            ) : (
              <>
                <DataTable name="audit" caption={t("title.audit")} columns={columns} rows={page.items} rowKey={(row) => String(row.id)} total={page.total} walkable />
                <OlderFoot onNewest={params.has("before") ? () => set({ before: null }) : undefined} onOlder={page.before > 0 ? () => set({ before: String(page.before) }) : undefined} />
              </>
            )
          }
        </Answered>
      </Panel>
    </main>
  );
}

const resultWord = (result: string, { code }: Words): string => code("audit-result", result, {}, result);

const objectOf = ({ target }: AuditEntry): string => [target.kind, target.namespace ? `${target.namespace}/${target.name}` : target.name].filter(Boolean).join(" ");

function auditColumns(words: Words): readonly Column<AuditEntry>[] {
  const { t } = words;
  const plain = { unsortable: true } as const;
  return [
    { ...plain, key: "at", head: t("audit.at"), width: 150, cell: (row) => whenWord(row.at) },
    { ...plain, key: "actor", head: t("audit.actor"), width: 110, mono: true, title: (row) => row.actor, cell: (row) => row.actor || "—" },
    { ...plain, key: "action", head: t("audit.action"), width: 150, mono: true, cell: (row) => row.action },
    { ...plain, key: "target", head: t("audit.object"), width: 180, mono: true, title: objectOf, cell: (row) => objectOf(row) || "—" },
    { ...plain, key: "result", head: t("audit.result"), width: 90, title: (row) => row.code, cell: (row) => [resultWord(row.result, words), row.code].filter(Boolean).join(": ") },
    { ...plain, key: "summary", head: t("audit.summary"), width: 170, title: (row) => row.summary, cell: (row) => row.summary || "—" },
    { ...plain, key: "sourceIp", head: t("audit.from"), width: 100, mono: true, cell: (row) => row.sourceIp },
    { ...plain, key: "requestId", head: t("audit.request"), width: 100, mono: true, cell: (row) => row.requestId },
  ];
}
