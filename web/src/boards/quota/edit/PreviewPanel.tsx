// What saving the tree would do: refused cells, or changed nodes, pods, namespaces, groups and bindings.
import type { FieldFault } from "../../../api/schema";
import type { QuotaTreePreview } from "../../../api/types";
import { count } from "../../../format/format";
import { useWords } from "../../../i18n/locale";
import { Panel } from "../../../parts/Panel";
import { EffectTables } from "../Effects";

const SHOWN = 50;

export function PreviewPanel({ preview, isLate }: { preview: QuotaTreePreview; isLate: boolean }) {
  const { t } = useWords();
  const bindings = preview.effects.filter(({ kind }) => kind === "RoleBinding" || kind === "ClusterRoleBinding");
  const lines: readonly (readonly [string, readonly string[]])[] = [
    [t("tree.overMax"), preview.overMax],
    [t("tree.raised"), preview.raised],
    [t("tree.governed"), preview.governed],
    [t("tree.released"), preview.released],
    [t("tree.createdNamespaces"), preview.effects.filter(({ kind }) => kind === "Namespace").map(({ name }) => name)],
    [t("tree.unknownNamespaces"), preview.unknownNamespaces],
    [t("tree.groups"), preview.groups.map(({ group, before, after }) => `${group}: ${before} → ${after}`)],
    [t("tree.bindingsMade"), bindings.filter(({ verb }) => verb === "create").map(({ namespace, name }) => (namespace ? `${namespace}/${name}` : name))],
    [t("tree.bindingsGone"), bindings.filter(({ verb }) => verb === "delete").map(({ namespace, name }) => (namespace ? `${namespace}/${name}` : name))],
  ];
  return (
    <div className="effects" data-late={isLate} data-testid="tree-preview" aria-live="polite">
      <Panel slug="tree-preview" title={t("tree.effects")} note={t("quota.nothingWritten")}>
        {preview.fields.length > 0 && <RefusedCells faults={preview.fields} />}
        {preview.nodes.length > 0 && (
          <ul className="faults" data-testid="tree-changes">
            {preview.nodes.slice(0, SHOWN).map((node) => (
              <li key={node.name}>
                <b>{t(node.change === "added" ? "tree.added" : node.change === "removed" ? "tree.removed" : "tree.changed")}</b> <span className="mono">{node.name}</span>{" "}
                {node.change !== "removed" && node.cells.map(({ cell, before, after }) => `${cell}: ${before || "–"} → ${after || "–"}`).join("; ")}
              </li>
            ))}
          </ul>
        )}
        <dl className="facts">
          {lines.map(([title, names]) =>
            names.length === 0 ? null : (
              <div key={title} style={{ display: "contents" }}>
                <dt>
                  {title} <span className="dim num">{count(names.length)}</span>
                </dt>
                <dd className="mono">{names.slice(0, SHOWN).join(", ")}</dd>
              </div>
            ),
          )}
        </dl>
        {preview.whatIf && <EffectTables effects={preview.whatIf} />}
      </Panel>
    </div>
  );
}

/** The English message has names and numbers; another language has the rule first. */
function RefusedCells({ faults }: { faults: readonly FieldFault[] }) {
  const { t, code, locale } = useWords();
  return (
    <div className="banner broken" role="alert" data-testid="tree-refused">
      <div>
        <b>{t("tree.refused", { n: faults.length })}</b>
        <ul className="faults">
          {faults.slice(0, SHOWN).map((fault) => (
            <li key={`${fault.path} ${fault.rule} ${fault.error}`}>
              <span className="mono">{fault.path}</span> <span className="mono dim">{fault.rule}</span> {locale !== "en" && <b>{code("fault", fault.code, {}, "")}</b>} <span lang="en">{fault.error}</span>
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}
