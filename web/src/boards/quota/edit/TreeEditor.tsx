// The quota tree as an administrator edits it: nodes, bounds and namespaces in place; what saving does is shown before it is saved.
import { useMemo, useState } from "react";
import { useTreePreview, useTreeWrite } from "../../../api/treewrites";
import { ApiError } from "../../../api/fetch";
import type { FieldFault } from "../../../api/schema";
import type { QuotaTreePage, QuotaTreePreview } from "../../../api/types";
import { useWords } from "../../../i18n/locale";
import { Panel } from "../../../parts/Panel";
import { useQueryState } from "../../../router/usequery";
import { SearchFilter } from "../../../table/Filters";
import { addChild, type Draft, draftOf, foundIn, ordersOf, rebased, removeNode, rename, restored, setAttributes, setBound, setResources, setSpaces, threeWay, yamlOf } from "./draft";
import { Clash } from "./Clash";
import { EditTable } from "./EditTable";
import { ResourceTypes } from "./ResourceTypes";
import { PreviewPanel } from "./PreviewPanel";
import { Versions } from "./Versions";

/** A draft that was looked at, and its effects. */
interface Seen {
  readonly draft: Draft;
  readonly creates: boolean;
  readonly preview: QuotaTreePreview;
}

export function TreeEditor({ page, onDone }: { page: QuotaTreePage; onDone: () => void }) {
  const { t } = useWords();
  const [params, set] = useQueryState();
  // What was read when the editing began: the page goes on being read, the edit does not move under the hands.
  const [base, setBase] = useState<Draft>(() => draftOf(page));
  const [draft, setDraft] = useState<Draft>(base);
  const [seen, setSeen] = useState<Seen | null>(null);
  /** Whether namespaces that do not exist are created. */
  const [creates, setCreates] = useState(false);
  const [theirs, setTheirs] = useState<Draft | null>(null);
  const [extra, setExtra] = useState<"" | "resources" | "yaml" | "versions">("");
  const preview = useTreePreview();
  const write = useTreeWrite();
  const shown = useMemo(() => foundIn(draft, params.get("q") ?? ""), [draft, params]);
  const isChanged = JSON.stringify(ordersOf(draft)) !== JSON.stringify(ordersOf(base));
  const isSeen = seen?.draft === draft && seen.creates === creates;
  const fault = [write.error, preview.error].find((error) => error !== null && !(error instanceof ApiError && error.code === "conflict")) ?? null;
  const faults: readonly FieldFault[] = seen?.preview.fields ?? [];
  const [added, setAdded] = useState("");

  const change = (next: Draft) => {
    setDraft(next);
    preview.reset();
    write.reset();
  };
  const moved = (error: Error) => {
    if (error instanceof ApiError && error.code === "conflict" && error.current) setTheirs(draftOf(error.current as QuotaTreePage));
  };
  const look = () => {
    const looked = draft;
    preview.mutate({ version: draft.version, nodes: ordersOf(draft), createNamespaces: creates }, { onSuccess: (answer) => setSeen({ draft: looked, creates, preview: answer }), onError: moved });
  };
  const save = () => write.mutate({ version: draft.version, nodes: ordersOf(draft), createNamespaces: creates }, { onSuccess: onDone, onError: moved });
  const toggle = (name: typeof extra) => setExtra(extra === name ? "" : name);
  return (
    <div className="tree-edit" data-testid="tree-editor" data-unsaved={isChanged}>
      <div className="filters">
        {(["resources", "yaml", "versions"] as const).map((name) => (
          <button key={name} type="button" className="toggle" aria-pressed={extra === name} onClick={() => toggle(name)} data-testid={`action-${name}`}>
            {t(`tree.${name}`)}
          </button>
        ))}
        <div className="end">
          <SearchFilter params={params} set={set} placeholder={t("quota.searchTree")} />
        </div>
      </div>
      {extra === "resources" && <ResourceTypes draft={draft} onChange={(resources) => change(setResources(draft, resources))} />}
      {extra === "yaml" && (
        <pre className="yaml mono" data-testid="tree-yaml">
          {yamlOf(draft)}
        </pre>
      )}
      {extra === "versions" && <Versions onRestore={(nodes) => change(restored(nodes, base))} />}
      <Panel slug="tree-edit" title={t("panel.quotaTree")} note={t("quota.nodes", { n: shown.length })} flush>
        <EditTable
          draft={draft}
          base={base}
          rows={shown}
          faults={faults}
          focused={added}
          onName={(id, segment) => change(rename(draft, id, segment))}
          onSpaces={(id, text) => change(setSpaces(draft, id, text))}
          onAttributes={(id, text) => change(setAttributes(draft, id, text))}
          onBound={(id, resource, bound, text) => change(setBound(draft, id, resource, bound, text))}
          onAdd={(id) => {
            const made = addChild(draft, id);
            setAdded(made.id);
            change(made.draft);
          }}
          onDelete={(id) => change(removeNode(draft, id))}
        />
      </Panel>
      {theirs && (
        <Clash
          rows={threeWay(base, draft, theirs)}
          onTakeOver={() => {
            change(rebased(base, draft, theirs));
            setBase(theirs);
            setSeen(null);
            setTheirs(null);
          }}
          onGiveUp={onDone}
        />
      )}
      {fault && (
        <p className="form-fault" role="alert" data-testid="tree-fault">
          {fault.message} {fault instanceof ApiError ? fault.hint : ""}
        </p>
      )}
      <p className="write-acts">
        <button type="button" className="toggle" disabled={!isChanged || preview.isPending || theirs !== null} onClick={look} data-testid="action-preview">
          {t("tree.preview")}
        </button>
        <button type="button" className="toggle primary" disabled={!isSeen || !seen?.preview.valid || write.isPending || theirs !== null} onClick={save} data-testid="action-save">
          {t("tree.save")}
        </button>
        <button type="button" className="link" onClick={onDone} data-testid="action-cancel">
          {t("tree.cancel")}
        </button>
        {(creates || (seen?.preview.unknownNamespaces.length ?? 0) > 0) && (
          <label>
            <input type="checkbox" checked={creates} onChange={(event) => setCreates(event.target.checked)} data-testid="create-namespaces" /> {t("tree.createNamespaces")}
          </label>
        )}
        <span className="dim">{t(isSeen ? "tree.seen" : "tree.previewFirst")}</span>
      </p>
      {seen && <PreviewPanel preview={seen.preview} isLate={!isSeen} />}
    </div>
  );
}
