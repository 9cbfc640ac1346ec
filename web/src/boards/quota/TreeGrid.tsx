// The quota tree as one table: bounds, use and waiting pods of every node, a group of columns per resource. Numbers changed in thought are asked about; nothing is written.
import { useEffect, useMemo, useState } from "react";
import { ObjectCommand } from "../../commands/EqualCommand";
import { useMe, useQuotaTree, useWhatIf } from "../../api/queries";
import type { QuotaBounds, QuotaTreePage, QuotaTreeRow, TreeFault } from "../../api/types";
import { amount, amountUnit, count } from "../../format/format";
import { useWords, type Words } from "../../i18n/locale";
import { unitWord } from "../../i18n/units";
import { Panel } from "../../parts/Panel";
import { Answered, Bones, Empty } from "../../parts/States";
import { useQueryState } from "../../router/usequery";
import type { Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { asQuestion, type Bound, cellKey, type Changes, found, NO_CHANGES, typed, unfolded, writtenText } from "./changes";
import { Effects } from "./Effects";
import { Faults } from "./Faults";
import { FirstTree } from "./FirstTree";
import { Bar } from "./QuotaBar";
import { ReplayPanel } from "./replay/ReplayPanel";
import { OVER_WIDTH, UsedAmount } from "./UsedAmount";

const MAX_ROWS = 16;
const BOARD_ROWS = 6;
const TYPING_MS = 400;
const NO_LIMIT = "N/A";
const BOUNDS = "[\u00a0min\u00a0,\u00a0max\u00a0]";

/** On the quota board: a cell is edited in place, a leaf opens its waiting pods. */
export function TreePanel({ onLeaf }: { onLeaf: (path: string) => void }) {
  const [params] = useQueryState();
  const asked = useQuotaTree();
  return (
    <Answered asked={asked} bones={<Bones lines={6} />}>
      {(page) => (page.items.length === 0 ? null : <TreeGrid page={page} chosen={params.getAll("resource")} search={params.get("q") ?? ""} isAsking inPlace onLeaf={onLeaf} />)}
    </Answered>
  );
}

/** Of the five resources that always have a table, those with amounts in the tree. */
function resourcesShown(page: QuotaTreePage, chosen: readonly string[]): readonly string[] {
  if (chosen.length > 0) return page.resources.filter((resource) => chosen.includes(resource));
  const named = page.resources.filter((resource) => page.items.some((row) => row.bounds.some((each) => each.resource === resource && (each.minText !== "0" || each.maxText !== ""))));
  return named.length > 0 ? named : page.resources;
}

interface Props {
  page: QuotaTreePage;
  chosen: readonly string[];
  search: string;
  isAsking: boolean;
  /** Cells are text until one is opened. */
  inPlace?: boolean;
  /** Shown here, unless the page around it shows it. */
  faults?: boolean;
  onLeaf?: (path: string) => void;
}

export function TreeGrid({ page, chosen, search, isAsking, inPlace = false, faults = false, onLeaf }: Props) {
  const { t } = useWords();
  const [params, set] = useQueryState();
  const [editing, setEditing] = useState<string | null>(null);
  const [changes, setChanges] = useState<Changes>(NO_CHANGES);
  const asking = useRested(isAsking ? changes : NO_CHANGES);
  const effects = useWhatIf(useMemo(() => asQuestion(asking), [asking]), useMe().data?.csrf);
  const answered = isAsking && asking.size > 0 ? effects.data : undefined;
  const faultOf = useMemo(() => faultsByNode(answered?.faults ?? []), [answered]);
  const resources = resourcesShown(page, chosen);
  const folded = params.getAll("fold");
  const matching = found(page.items, search);
  const rows = search ? matching : unfolded(matching, folded);
  const columns = treeColumns(t, page, resources, isAsking ? { changes, setChanges, faultOf, inPlace, editing, setEditing } : null, inPlace);
  const fold = (row: QuotaTreeRow, isOpen: boolean) => set({ fold: isOpen ? folded.filter((path) => path !== row.path) : [...folded, row.path] }, "replace");
  const isOpen = (row: QuotaTreeRow) => (row.isLeaf ? undefined : Boolean(search) || !folded.includes(row.path));
  if (page.items.length === 0) {
    return (
      <>
        <Faults faults={page.faults} />
        <section className="panel">
          <Empty why={t(page.faults.length > 0 ? "quota.unreadable" : "quota.none")}>
            <FirstTree warnings={page.warnings} />
          </Empty>
        </section>
      </>
    );
  }
  return (
    <>
      {faults && <Faults faults={page.faults} />}
      {isAsking && (
        <p className="hint-line">
          {t("quota.whatIfHint")}{" "}
          {changes.size > 0 && (
            <button type="button" className="link" onClick={() => setChanges(NO_CHANGES)} data-testid="action-undo" data-unsaved>
              {t("quota.undo", { n: count(changes.size) })}
            </button>
          )}
        </p>
      )}
      <Panel slug="quota-tree" title={t("panel.quotaTree")} note={t("quota.nodes", { n: matching.length })} tools={<ObjectCommand of={{ kind: "tree" }} />} flush>
        {rows.length === 0 ? (
          <Empty why={t("quota.noneMatch")} />
        ) : (
          <DataTable
            name="quota-tree"
            caption={t("panel.quotaTree")}
            columns={columns}
            rows={rows}
            rowKey={(row) => row.path}
            maxRows={inPlace ? BOARD_ROWS : MAX_ROWS}
            walkable
            tree={{ levelOf: (row) => row.depth + 1, isOpen, onFold: fold }}
            onOpen={(row) => (row.isLeaf ? onLeaf?.(row.path) : fold(row, !isOpen(row)))}
            rowClass={(row) => (row.isLeaf ? undefined : "inner")}
          />
        )}
      </Panel>
      {isAsking && asking.size > 0 && <Effects asked={effects} isLate={asking !== changes || effects.isPlaceholderData} />}
      {isAsking && !inPlace && <ReplayPanel changes={changes} />}
    </>
  );
}

/** The typed text, after a short pause in typing. */
function useRested(changes: Changes): Changes {
  const [rested, setRested] = useState(changes);
  useEffect(() => {
    const timer = setTimeout(() => setRested(changes), changes.size === 0 ? 0 : TYPING_MS);
    return () => clearTimeout(timer);
  }, [changes]);
  return rested;
}

function faultsByNode(faults: readonly TreeFault[]): ReadonlyMap<string, string> {
  const messages = new Map<string, string>();
  for (const fault of faults.filter((each) => each.level === "error")) messages.set(fault.path, [messages.get(fault.path), fault.message].filter(Boolean).join("\n"));
  return messages;
}

interface Asking {
  readonly changes: Changes;
  readonly setChanges: (changes: Changes) => void;
  readonly faultOf: ReadonlyMap<string, string>;
  readonly inPlace: boolean;
  /** Path and resource of the open cell. */
  readonly editing: string | null;
  readonly setEditing: (cell: string | null) => void;
}

function treeColumns(t: Words["t"], page: QuotaTreePage, resources: readonly string[], asking: Asking | null, onBoard: boolean): Column<QuotaTreeRow>[] {
  const boundsOf = (row: QuotaTreeRow, resource: string) => row.bounds[page.resources.indexOf(resource)] as QuotaBounds;
  const unitOf = (resource: string) => unitWord(amountUnit(page.items[0]?.bounds[page.resources.indexOf(resource)]?.unit ?? "count"), t);
  const isOver = (resource: string) => page.items.some((row) => boundsOf(row, resource).overMax > 0);
  return [
    { key: "name", head: t("col.name"), width: 150, mono: true, fixed: true, unsortable: true, title: (row) => row.path, cell: (row) => <Name row={row} fault={asking?.faultOf.get(row.name)} /> },
    ...(onBoard ? [] : [namespacesColumn(t)]),
    ...resources.flatMap((resource): Column<QuotaTreeRow>[] => [
      asking
        ? { key: `${resource} bounds`, head: resource, unit: BOUNDS, width: 196, mono: asking.inPlace, unsortable: true, cell: (row) => <BoundsCell row={row} bounds={boundsOf(row, resource)} asking={asking} /> }
        : { key: `${resource} bounds`, head: resource, unit: BOUNDS, width: 160, mono: true, unsortable: true, cell: (row) => boundsText(boundsOf(row, resource)) },
      { key: `${resource} used`, head: t("col.usedShort"), unit: unitOf(resource), width: isOver(resource) ? OVER_WIDTH : 84, number: true, unsortable: true, cell: (row) => <Used bounds={boundsOf(row, resource)} t={t} /> },
      ...(onBoard ? [{ key: `${resource} bar`, head: t("col.bar"), width: 112, unsortable: true, cell: (row: QuotaTreeRow) => <Bar of={{ ...boundsOf(row, resource), requested: boundsOf(row, resource).used }} t={t} /> }] : []),
      ...(page.items.some((row) => boundsOf(row, resource).waitingPods > 0)
        ? [{ key: `${resource} waiting`, head: t("col.waitingPods"), unit: resource, width: 84, number: true, unsortable: true, cell: (row: QuotaTreeRow) => (boundsOf(row, resource).waitingPods > 0 ? count(boundsOf(row, resource).waitingPods) : "") }]
        : []),
    ]),
    ...(onBoard ? [] : [{ key: "waiting", head: t("col.waitingPods"), width: 84, number: true, unsortable: true, cell: (row: QuotaTreeRow) => (row.waitingPods > 0 ? count(row.waitingPods) : "") }]),
  ];
}

const Used = ({ bounds, t }: { bounds: QuotaBounds; t: Words["t"] }) => <UsedAmount text={amount(bounds.unit, bounds.used)} unit={bounds.unit} over={bounds.overMax} t={t} />;

const namespacesColumn = (t: Words["t"]): Column<QuotaTreeRow> => ({ key: "namespaces", head: t("col.namespaces"), width: 130, mono: true, unsortable: true, title: (row) => row.namespaces.join(", "), cell: (row) => row.namespaces.join(", ") || (row.isLeaf ? "-" : "") });

/** As quantities, in their shortest form. */
const boundsText = (bounds: QuotaBounds): string => `[ ${bounds.minText} , ${bounds.maxText || NO_LIMIT} ]`;

/** Indented by text, not by an element: there are many rows. */
function Name({ row, fault }: { row: QuotaTreeRow; fault: string | undefined }) {
  const name = "\u2003".repeat(row.depth) + row.shortName;
  return fault ? (
    <span className="flag broken" title={fault}>
      {name} !
    </span>
  ) : (
    name
  );
}

/** Text that opens as two inputs; it stays open while it differs from the tree. */
function BoundsCell({ row, bounds, asking }: { row: QuotaTreeRow; bounds: QuotaBounds; asking: Asking }) {
  const { t } = useWords();
  const cell = JSON.stringify([row.name, bounds.resource]);
  const isChanged = (["min", "max"] as const).some((bound) => asking.changes.has(cellKey(row.name, bounds.resource, bound)));
  if (!asking.inPlace || asking.editing === cell || isChanged) return <BoundInputs row={row} bounds={bounds} asking={asking} />;
  const text = boundsText(bounds);
  return (
    <button
      type="button"
      className="plain boundtext"
      tabIndex={-1}
      data-cell
      data-testid={`bounds-${row.name}-${bounds.resource}`}
      aria-label={t("quota.changeBounds", { bounds: text, resource: bounds.resource, node: row.name })}
      onClick={() => asking.setEditing(cell)}
    >
      {text}
    </button>
  );
}

function BoundInputs({ row, bounds, asking }: { row: QuotaTreeRow; bounds: QuotaBounds; asking: Asking }) {
  const { t } = useWords();
  const input = (bound: Bound) => {
    const key = cellKey(row.name, bounds.resource, bound);
    const text = asking.changes.get(key);
    return (
      <input
        className="bound"
        aria-label={t(bound === "min" ? "quota.minOf" : "quota.maxOf", { resource: bounds.resource, node: row.name })}
        aria-invalid={text !== undefined && asking.faultOf.has(row.name)}
        data-changed={text !== undefined}
        data-testid={`bound-${row.name}-${bounds.resource}-${bound}`}
        value={text ?? writtenText(bounds, bound)}
        placeholder={bound === "max" ? t("quota.unlimited") : "0"}
        spellCheck={false}
        autoComplete="off"
        // eslint-disable-next-line jsx-a11y/no-autofocus -- it was opened to be typed into
        autoFocus={asking.inPlace && bound === "min" && asking.editing === JSON.stringify([row.name, bounds.resource])}
        onKeyDown={(event) => {
          if (!asking.inPlace || (event.key !== "Escape" && event.key !== "Enter")) return;
          event.preventDefault();
          event.currentTarget.closest("tr")?.focus();
          asking.setEditing(null);
          if (event.key === "Escape") asking.setChanges(NO_CHANGES);
        }}
        onChange={(event) => asking.setChanges(typed(asking.changes, row.name, bounds, bound, event.target.value))}
      />
    );
  };
  return (
    <span className="bounds">
      {input("min")}
      {input("max")}
    </span>
  );
}
