// A data set over an object store, a claim or another source. Keys are never typed here: the form names the Secret that has them.
import { type ReactNode, useId, useState } from "react";
import { usePreview, type WriteOrder } from "../../api/queries";
import type { AccelerationPreview, FieldFault } from "../../api/types";
import { useWords } from "../../i18n/locale";
import { allFaults, faultsOf, Field, FormDialog } from "../../parts/FormDialog";
import { useLate } from "../../parts/useLate";
import { useBegin } from "../operations/useBegin";
import { type CacheDraft, CacheFields, cacheOrder, CHECK_AGAIN_MS, EMPTY_CACHE, Found } from "./CacheParts";

type Kind = "oss" | "s3" | "pvc" | "other";
const KINDS: readonly Kind[] = ["oss", "s3", "pvc", "other"];

interface Draft extends CacheDraft {
  readonly namespace: string;
  readonly name: string;
  readonly kind: Kind;
  /** After the scheme; the whole URI of another source. */
  readonly place: string;
  readonly endpoint: string;
  readonly secret: string;
  readonly idKey: string;
  readonly secretKey: string;
}

type TextKey = "namespace" | "name" | "place" | "endpoint" | "secret" | "idKey" | "secretKey";
const FIELDS = ["namespace", "name", "mount", "endpoint", "secret", "idKey", "secretKey"] as const;
const isStore = ({ kind }: Draft): boolean => kind === "oss" || kind === "s3";

/** A URI that was pasted with its scheme keeps it. */
function mountOf({ kind, place }: Draft): string {
  const text = place.trim();
  return kind === "other" || text.includes("://") ? text : `${kind}://${text}`;
}

function orderOf(draft: Draft) {
  const store = (text: string) => (isStore(draft) ? text.trim() : "");
  const key = (text: string) => (draft.secret.trim() === "" ? "" : store(text));
  return {
    namespace: draft.namespace.trim(),
    name: draft.name.trim(),
    mount: mountOf(draft),
    endpoint: store(draft.endpoint),
    secret: store(draft.secret),
    idKey: key(draft.idKey),
    secretKey: key(draft.secretKey),
    ...cacheOrder(draft),
  };
}

export function AddForm({ namespace, namespaces, onClose }: { namespace: string; namespaces: readonly string[]; onClose: () => void }) {
  const { t } = useWords();
  const [draft, setDraft] = useState<Draft>({ ...EMPTY_CACHE, namespace, name: "", kind: "oss", place: "", endpoint: "", secret: "", idKey: "", secretKey: "" });
  const { write, begin } = useBegin();
  const body = orderOf(draft);
  const order: WriteOrder = { method: "POST", path: "/datasets", body };
  const asked = JSON.stringify(body);
  const isStill = useLate(asked) === asked;
  const isFull = body.namespace !== "" && body.name !== "" && draft.place.trim() !== "";
  const preview = usePreview<AccelerationPreview>(isStill && isFull ? order : null, CHECK_AGAIN_MS);
  const found = isFull ? preview.data : undefined;
  const set = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  // Checks show their own faults, with their fix; only fields that cannot be read have one of their own.
  const unread = (found?.checks ?? []).length === 0 ? allFaults(write.error, found) : [];
  return (
    <FormDialog
      title={t("datasets.addTitle")}
      word={t("datasets.add")}
      isReady={found?.valid === true && isStill}
      isBusy={write.isPending}
      error={write.error ?? preview.error}
      preview={found}
      testId="add-form"
      onSubmit={() => begin(order)}
      onClose={onClose}
    >
      <p className="dim">{t("datasets.addWhy")}</p>
      <SourceFields draft={draft} namespaces={namespaces} faults={unread} set={set} />
      <CacheFields slug="add" draft={draft} chosen={found?.chosen} faults={unread} set={set} />
      <Found slug="add" preview={found} faults={unread} fields={FIELDS} isBusy={preview.isFetching} onAgain={() => void preview.refetch()} />
    </FormDialog>
  );
}

interface SourceProps {
  draft: Draft;
  namespaces: readonly string[];
  faults: readonly FieldFault[];
  set: (part: Partial<Draft>) => void;
}

function SourceFields({ draft, namespaces, faults, set }: SourceProps) {
  const { t } = useWords();
  const list = useId();
  const text = (key: TextKey, placeholder = "", id?: string) => (
    <input type="text" className="mono" value={draft[key]} maxLength={key === "place" ? 1000 : 253} placeholder={placeholder} autoComplete="off" list={id} onChange={(event) => set({ [key]: event.target.value })} data-testid={`add-${key}`} />
  );
  return (
    <>
      <Field label={t("col.namespace")} faults={faultsOf(faults, "namespace")}>
        {text("namespace", "", list)}
      </Field>
      <datalist id={list}>
        {namespaces.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </datalist>
      <Field label={t("datasets.newName")} faults={faultsOf(faults, "name")}>
        {text("name", "faces")}
      </Field>
      <Field label={t("datasets.sourceKind")}>
        <select value={draft.kind} onChange={(event) => set({ kind: KINDS.find((each) => each === event.target.value) ?? "other" })} data-testid="add-kind">
          <option value="oss">{t("datasets.oss")}</option>
          <option value="s3">{t("datasets.s3")}</option>
          <option value="pvc">{t("datasets.claim")}</option>
          <option value="other">{t("datasets.other")}</option>
        </select>
      </Field>
      <PlaceFields draft={draft} faults={faults} text={text} />
    </>
  );
}

function PlaceFields({ draft, faults, text }: { draft: Draft; faults: readonly FieldFault[]; text: (key: TextKey, placeholder?: string) => ReactNode }) {
  const { t } = useWords();
  if (draft.kind === "pvc")
    return (
      <Field label={t("datasets.claimPlace")} hint={t("datasets.claimPlaceHint")} faults={faultsOf(faults, "mount", "endpoint", "secret")}>
        {text("place", "raw/images")}
      </Field>
    );
  if (!isStore(draft))
    return (
      <Field label={t("datasets.uri")} hint={t("datasets.uriHint")} faults={faultsOf(faults, "mount", "endpoint", "secret")}>
        {text("place", "https://example.org/data")}
      </Field>
    );
  return (
    <>
      <Field label={t("datasets.bucket")} hint={t("datasets.bucketHint")} faults={faultsOf(faults, "mount")}>
        {text("place", "bucket/faces")}
      </Field>
      <Field label={t("datasets.endpoint")} faults={faultsOf(faults, "endpoint")}>
        {text("endpoint", draft.kind === "oss" ? "oss.example.org" : "https://s3.example.org")}
      </Field>
      <Field label={t("datasets.secret")} hint={t("datasets.secretHint")} faults={faultsOf(faults, "secret")}>
        {text("secret", "oss-keys")}
      </Field>
      {draft.secret.trim() !== "" && (
        <>
          <Field label={t("datasets.idKey")} faults={faultsOf(faults, "idKey")}>
            {text("idKey", "accessKeyId")}
          </Field>
          <Field label={t("datasets.secretKey")} faults={faultsOf(faults, "secretKey")}>
            {text("secretKey", "accessKeySecret")}
          </Field>
        </>
      )}
    </>
  );
}
