// Ends an acceleration: what prevents it comes first, then what goes and what stays; the name is typed.
import { useMemo, useState } from "react";
import { usePreview, type WriteOrder } from "../../api/queries";
import { useWords } from "../../i18n/locale";
import { Faults, Field, FormDialog } from "../../parts/FormDialog";
import { useBegin } from "../operations/useBegin";

const CHECK_AGAIN_MS = 5_000;
const segment = encodeURIComponent;

export function EndForm({ namespace, name, onClose }: { namespace: string; name: string; onClose: () => void }) {
  const { t } = useWords();
  const [text, setText] = useState("");
  const { write, begin } = useBegin();
  const order = useMemo<WriteOrder>(() => ({ method: "DELETE", path: `/datasets/${segment(namespace)}/${segment(name)}`, body: null }), [namespace, name]);
  const preview = usePreview(order, CHECK_AGAIN_MS);
  const isBlocked = preview.data !== undefined && !preview.data.valid;
  return (
    <FormDialog
      title={t("datasets.endTitle", { name: `${namespace}/${name}` })}
      word={t("datasets.unaccelerate")}
      isDestructive
      isReady={text === name && preview.data?.valid === true}
      isBusy={write.isPending}
      error={write.error ?? preview.error}
      preview={preview.data}
      testId="end-form"
      onSubmit={() => begin(order)}
      onClose={onClose}
    >
      {isBlocked && (
        <>
          <p>{t("datasets.endBlocked")}</p>
          <Faults of={preview.data?.fields ?? []} testId="end-blocked" />
        </>
      )}
      <p>{t("datasets.endWhy")}</p>
      <Field label={t("form.typeName", { name })}>
        <input type="text" className="mono" value={text} autoComplete="off" onChange={(event) => setText(event.target.value)} data-testid="end-name" />
      </Field>
    </FormDialog>
  );
}
