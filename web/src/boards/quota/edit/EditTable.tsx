// The rows of the tree that is edited: a field for the name, the namespaces and each bound, and what may be done to the node.
import type { FieldFault } from "../../../api/schema";
import { useWords, type Words } from "../../../i18n/locale";
import type { Column } from "../../../table/columns";
import { DataTable } from "../../../table/DataTable";
import type { Bound } from "../changes";
import { childrenOf, depthOf, type Draft, type DraftNode, segmentOf } from "./draft";

const MAX_ROWS = 16;

interface Props {
  draft: Draft;
  base: Draft;
  rows: readonly DraftNode[];
  faults: readonly FieldFault[];
  /** A node that was just added: its name is what is typed next. */
  focused: string;
  onName: (id: string, segment: string) => void;
  onSpaces: (id: string, text: string) => void;
  onAttributes: (id: string, text: string) => void;
  onBound: (id: string, resource: string, bound: Bound, text: string) => void;
  onAdd: (id: string) => void;
  onDelete: (id: string) => void;
}

export function EditTable(props: Props) {
  const { t } = useWords();
  return <DataTable name="tree-edit" caption={t("panel.quotaTree")} columns={columnsOf(props, t)} rows={props.rows} rowKey={(row) => row.id} maxRows={MAX_ROWS} />;
}

function columnsOf({ draft, base, faults, focused, onName, onSpaces, onAttributes, onBound, onAdd, onDelete }: Props, t: Words["t"]): Column<DraftNode>[] {
  const before = new Map(base.nodes.map((node) => [node.formerly, node]));
  const field = (node: DraftNode, cell: string, label: string, value: string, was: string, onChange: (text: string) => void, hint = "") => {
    const wrong = faults.find((fault) => fault.path === `${node.name}.${cell}`);
    return (
      <input
        className={["name", "namespaces", "attributes"].includes(cell) ? "bound wide" : "bound"}
        aria-label={label}
        aria-invalid={wrong !== undefined}
        title={wrong?.error}
        data-changed={value !== was || node.formerly === ""}
        data-testid={`edit-${node.name}-${cell}`}
        value={value}
        placeholder={hint}
        spellCheck={false}
        autoComplete="off"
        // eslint-disable-next-line jsx-a11y/no-autofocus -- the node was added to be named
        autoFocus={cell === "name" && node.id === focused}
        onChange={(event) => onChange(event.target.value)}
      />
    );
  };
  const was = (node: DraftNode) => before.get(node.formerly);
  return [
    {
      key: "name",
      head: t("col.name"),
      width: 200,
      fixed: true,
      unsortable: true,
      cell: (node) => {
        const former = was(node);
        return (
          <span className="tree-name">
            <span aria-hidden="true">{"\u2003".repeat(depthOf(draft, node))}</span>
            {field(node, "name", t("tree.nameOf", { node: node.name }), segmentOf(draft, node), former ? segmentOf(base, former) : "", (text) => onName(node.id, text))}
          </span>
        );
      },
    },
    {
      key: "namespaces",
      head: t("col.namespaces"),
      width: 180,
      unsortable: true,
      cell: (node) => (childrenOf(draft, node.id).length > 0 && node.namespaces === "" ? "" : field(node, "namespaces", t("tree.spacesOf", { node: node.name }), node.namespaces, was(node)?.namespaces ?? "", (text) => onSpaces(node.id, text))),
    },
    ...draft.resources.map(
      (resource): Column<DraftNode> => ({
        key: resource,
        head: resource,
        unit: "[\u00a0min\u00a0,\u00a0max\u00a0]",
        width: 196,
        unsortable: true,
        cell: (node) => (
          <span className="bounds">
            {(["min", "max"] as const).map((bound) => (
              <span key={bound}>
                {field(node, `${bound}.${resource}`, t(bound === "min" ? "quota.minOf" : "quota.maxOf", { resource, node: node.name }), node[bound][resource] ?? "", was(node)?.[bound][resource] ?? "", (text) => onBound(node.id, resource, bound, text), bound === "max" || node.parent === null ? t("quota.unlimited") : "0")}
              </span>
            ))}
          </span>
        ),
      }),
    ),
    {
      key: "attributes",
      head: t("tree.attributes"),
      width: 220,
      unsortable: true,
      cell: (node) => field(node, "attributes", t("tree.attributesOf", { node: node.name }), node.attributes, was(node)?.attributes ?? "", (text) => onAttributes(node.id, text), "key=value; key=value"),
    },
    {
      key: "acts",
      head: t("tree.acts"),
      width: 130,
      unsortable: true,
      cell: (node) => (
        <span className="write-acts">
          <button type="button" className="link" onClick={() => onAdd(node.id)} aria-label={t("tree.addBelow", { node: node.name })} data-testid={`add-${node.name}`}>
            {t("tree.add")}
          </button>
          {node.parent !== null && childrenOf(draft, node.id).length === 0 && (
            <button type="button" className="link" onClick={() => onDelete(node.id)} aria-label={t("tree.deleteNode", { node: node.name })} data-testid={`delete-${node.name}`}>
              {t("tree.delete")}
            </button>
          )}
        </span>
      ),
    },
  ];
}
