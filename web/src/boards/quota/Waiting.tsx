// Units that wait for quota, in their order, with the reason from the pod's condition and its numbers.
import { useMemo } from "react";
import { useQuotaWaiting } from "../../api/queries";
import type { WaitingUnit } from "../../api/types";
import { amount, amountUnit, count } from "../../format/format";
import { useWords, type Words } from "../../i18n/locale";
import { unitWord } from "../../i18n/units";
import { Ago } from "../../parts/Ago";
import { Panel } from "../../parts/Panel";
import { SidePanel } from "../../parts/SidePanel";
import { Answered, Bones, Empty } from "../../parts/States";
import { clauseWords } from "../../parts/WhyItWaits";
import { Link } from "../../router/Link";
import { listQuery, parsePaging } from "../../router/query";
import { useQueryState } from "../../router/usequery";
import { type Column, isShown, useTableView } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { BeyondLastPage, TableFoot, TableTools } from "../../table/TableTools";

const ASKED = ["path", "name", "at"] as const;
const MAX_ROWS = 10;
/** Reasons that only a user can resolve: the request is too large, or the tree is invalid. */
const NEEDS_A_USER: readonly string[] = ["NeverFits", "TreeInvalid"];

export function WaitingPanel() {
  const words = useWords();
  const { t } = words;
  const [params, set] = useQueryState();
  const asking = useMemo(() => listQuery(params, ASKED), [params]);
  const asked = useQuotaWaiting(asking);
  const view = useTableView("quota-waiting");
  const columns = useMemo(() => waitingColumns(words), [words]);
  const paging = parsePaging(asking);
  const total = asked.data?.total ?? 0;
  const open = params.get("open");
  return (
    <Panel
      slug="quota-waiting"
      title={t("panel.quotaWaiting")}
      note={total > 0 ? count(total) : undefined}
      tools={<TableTools view={view} columns={columns} csv={{ path: "/quota/waiting", params: asking }} command="waiting" />}
      flush
    >
      <Answered asked={asked} bones={<Bones lines={3} />}>
        {(list) =>
          list.total === 0 ? (
            <Empty why={t("quota.nobodyWaits")} />
          ) : list.items.length === 0 ? (
            <BeyondLastPage page={paging.page} set={set} />
          ) : (
            <>
              <DataTable
                name="quota-waiting"
                caption={t("panel.quotaWaiting")}
                columns={columns.filter((c) => isShown(c, view))}
                rows={list.items}
                rowKey={(row) => row.unit}
                density={view.density}
                maxRows={MAX_ROWS}
                selected={open}
                onOpen={(row) => set({ open: row.unit }, open ? "replace" : "push")}
                offset={(paging.page - 1) * paging.size}
                total={list.total}
              />
              {list.total > list.items.length && <TableFoot total={list.total} paging={paging} set={set} />}
            </>
          )
        }
      </Answered>
    </Panel>
  );
}

function waitingColumns(words: Pick<Words, "t" | "code">): Column<WaitingUnit>[] {
  const { t } = words;
  const plain = { unsortable: true };
  return [
    { ...plain, key: "position", head: t("col.position"), width: 78, number: true, cell: (row) => (row.position > 0 ? count(row.position) : "") },
    { ...plain, key: "unit", head: t("col.waitingUnit"), width: 196, mono: true, fixed: true, title: (row) => row.unit, cell: (row) => row.unit },
    { ...plain, key: "pods", head: t("col.pods"), width: 52, number: true, cell: (row) => count(row.pods) },
    { ...plain, key: "leaf", head: t("col.quotaName"), width: 124, mono: true, title: (row) => row.path, cell: (row) => belowRoot(row.path) },
    { ...plain, key: "reason", head: t("col.reason"), width: 172, cell: (row) => <Reason of={row} /> },
    { ...plain, key: "message", head: t("col.why"), width: 316, title: (row) => said(row, words), cell: (row) => said(row, words) },
    { ...plain, key: "user", head: t("col.user"), width: 90, optional: true, cell: (row) => row.user ?? "-" },
    { ...plain, key: "since", head: t("col.waitingSince"), width: 92, cell: (row) => (row.since ? <Ago at={row.since} /> : "—") },
  ];
}

/** `root.a.1` → `a.1`; the root itself stays. */
const belowRoot = (path: string): string => path.split(".").slice(1).join(".") || path;

/** The sentence, in the reader's language where its words are known. */
const said = (row: WaitingUnit, words: Pick<Words, "t" | "code">): string => clauseWords(row.clauses, words) ?? row.message;

function Reason({ of: row }: { of: WaitingUnit }) {
  const { t, code } = useWords();
  const tone = row.reason === null ? "run" : NEEDS_A_USER.includes(row.reason) ? "bad" : "wait";
  return (
    <span className="status" data-tone={tone}>
      {row.reason === null ? t("quota.hasRoom") : code("reason", row.reason, {}, row.reason)}
    </span>
  );
}

/** One unit with the details. It may be on another page of the list, so it is requested by its name. */
export function WaitingFacts({ unit, onClose }: { unit: string; onClose: () => void }) {
  const { t } = useWords();
  const asked = useQuotaWaiting(useMemo(() => new URLSearchParams({ q: unit, size: "500" }), [unit]));
  return (
    <SidePanel name={unit} of={{ kind: "unit", unit }} onClose={onClose}>
      <Answered asked={asked} bones={<Bones lines={6} />}>
        {(list) => {
          const row = list.items.find((each) => each.unit === unit);
          return row ? <Facts row={row} /> : <Empty why={t("quota.waitsNoMore")} />;
        }}
      </Answered>
    </SidePanel>
  );
}

/** All waiting units of one leaf, in their order, each with its reason. */
export function LeafWaiting({ path, onClose }: { path: string; onClose: () => void }) {
  const words = useWords();
  const { t } = words;
  const asked = useQuotaWaiting(useMemo(() => new URLSearchParams({ path, size: "100" }), [path]));
  return (
    <SidePanel name={path} of={{ kind: "leaf", path }} onClose={onClose}>
      <Answered asked={asked} bones={<Bones lines={6} />}>
        {(list) =>
          list.items.length === 0 ? (
            <Empty why={t("quota.nobodyWaits")} />
          ) : (
            <section className="section">
              <h2>
                {t("panel.quotaWaiting")} {list.total > list.items.length && <span className="dim num">{t("quota.firstOf", { shown: count(list.items.length), total: count(list.total) })}</span>}
              </h2>
              <dl className="facts" data-testid="leaf-waiting">
                {list.items.map((row) => (
                  <Pair key={row.unit} name={row.position > 0 ? `${row.position}. ${row.unit}` : row.unit}>
                    <Reason of={row} /> <span>{said(row, words)}</span>
                  </Pair>
                ))}
              </dl>
            </section>
          )
        }
      </Answered>
    </SidePanel>
  );
}

function Facts({ row }: { row: WaitingUnit }) {
  const words = useWords();
  const { t } = words;
  const text = (unit: string, value: number, resource: string) => [amount(unit, value), unit === "cores" ? "" : unitWord(amountUnit(unit), t), resource].filter(Boolean).join(" ");
  return (
    <>
      <section className="section">
        <p className="why">
          {said(row, words)}
        </p>
        <dl className="facts">
          <dt>{t("col.reason")}</dt>
          <dd>
            <Reason of={row} />
          </dd>
          <dt>{t("col.quotaName")}</dt>
          <dd>
            <Link to={`/quota?path=${encodeURIComponent(row.path)}`} className="mono">
              {row.leaf}
            </Link>
          </dd>
          {row.position > 0 && (
            <>
              <dt>{t("col.position")}</dt>
              <dd className="num">{count(row.position)}</dd>
            </>
          )}
          <dt>{t("col.pods")}</dt>
          <dd className="num">{count(row.pods)}</dd>
          <dt>{t("col.user")}</dt>
          <dd>{row.user ?? "-"}</dd>
        </dl>
      </section>
      {row.blocked.length > 0 && (
        <section className="section">
          <h2>{t("quota.blockedAt")}</h2>
          <dl className="facts">
            {row.blocked.map((each) => (
              <Pair key={`${each.node} ${each.resource}`} name={each.node}>
                {t("quota.blockedLine", { used: amount(each.unit, each.used), claimed: amount(each.unit, each.claimed), max: text(each.unit, each.max, each.resource), asks: amount(each.unit, each.asks) })}
              </Pair>
            ))}
          </dl>
        </section>
      )}
      {row.borrowers.length > 0 && (
        <section className="section">
          <h2>
            {t("quota.borrowers")} {row.borrowersCount > row.borrowers.length && <span className="dim num">{t("quota.firstOf", { shown: count(row.borrowers.length), total: count(row.borrowersCount) })}</span>}
          </h2>
          <dl className="facts">
            {row.borrowers.map((each) => (
              <Pair key={`${each.leaf} ${each.resource}`} name={each.leaf}>
                +{text(each.unit, each.over, each.resource)}
              </Pair>
            ))}
          </dl>
        </section>
      )}
      {row.spared.length > 0 && (
        <section className="section">
          <h2>{t("quota.spared")}</h2>
          <dl className="facts">
            {row.spared.map((each) => (
              <Pair key={each.pod} name={each.pod}>
                {each.why}
              </Pair>
            ))}
          </dl>
        </section>
      )}
    </>
  );
}

function Pair({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <>
      <dt className="mono">{name}</dt>
      <dd className="num">{children}</dd>
    </>
  );
}
