// Deletes one object, which is named; its name is typed where much goes with it.
import { useMemo, useState } from "react";
import { usePreview, useWrite, type WriteOrder } from "../../api/queries";
import type { Deleted } from "../../api/types";
import { useWords } from "../../i18n/locale";
import { Faults, Field, FormDialog } from "../../parts/FormDialog";

interface Props {
  title: string;
  why: string;
  /** What has to be typed; without it the button is enough. */
  typed?: string;
  path: string;
  version?: string;
  /** Unfinished work may be left behind. */
  canForce?: boolean;
  onClose: () => void;
  onDone?: () => void;
}

export function DeleteDialog({ title, why, typed, path, version, canForce = false, onClose, onDone }: Props) {
  const { t } = useWords();
  const [text, setText] = useState("");
  const [isForced, setForced] = useState(false);
  const write = useWrite<Deleted>();
  const order = useMemo<WriteOrder>(() => ({ method: "DELETE", path, body: null, version, ...(isForced && { params: new URLSearchParams({ force: "true" }) }) }), [path, version, isForced]);
  const preview = usePreview(order);
  const isBlocked = preview.data !== undefined && !preview.data.valid;
  return (
    <FormDialog
      title={title}
      word={t("form.delete")}
      isDestructive
      isReady={(typed === undefined || text === typed) && !isBlocked}
      isBusy={write.isPending}
      error={write.error ?? preview.error}
      preview={preview.data}
      testId="delete-form"
      onSubmit={() =>
        write.mutate(order, {
          onSuccess: () => {
            onClose();
            onDone?.();
          },
        })
      }
      onClose={onClose}
    >
      <p>{why}</p>
      {isBlocked && <Faults of={preview.data?.fields ?? []} testId="delete-blocked" />}
      {canForce && (isForced || preview.data?.fields.some((fault) => fault.rule === "unfinished")) && (
        <label className="form-row">
          <input type="checkbox" checked={isForced} onChange={(event) => setForced(event.target.checked)} /> {t("users.force")}
        </label>
      )}
      {typed !== undefined && (
        <Field label={t("form.typeName", { name: typed })}>
          <input type="text" className="mono" value={text} autoComplete="off" onChange={(event) => setText(event.target.value)} data-testid="delete-name" />
        </Field>
      )}
    </FormDialog>
  );
}
