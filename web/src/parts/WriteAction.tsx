// A button for a write, and the dialog that names the object before it is sent. A write that fails leaves the dialog open.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import { ApiError, sendWrite, type WriteMethod } from "../api/fetch";
import { useMe } from "../api/queries";
import { shown } from "../format/shown";
import { useWords } from "../i18n/locale";
import { Icon } from "./Icon";
import { useDialog } from "./useDialog";

interface Props {
  /** On the button, and in the dialog. */
  label: string;
  /** What the dialog asks; it names the object. */
  question: string;
  /** What follows from it. */
  effect: string;
  method: WriteMethod;
  path: string;
  body: object | null;
  slug: string;
  isDeletion?: boolean;
  onDone?: () => void;
}

export function WriteAction({ label, question, effect, method, path, body, slug, isDeletion = false, onDone }: Props) {
  const { t, code } = useWords();
  const [open, setOpen] = useState(false);
  const dialog = useDialog(open, () => setOpen(false));
  const id = useId();
  const client = useQueryClient();
  const csrf = useMe().data?.csrf ?? "";
  const write = useMutation({
    mutationFn: () => sendWrite<unknown>(method, path, body ?? {}, csrf),
    onSuccess: async () => {
      setOpen(false);
      await Promise.all([["jobs"], ["nodes"], ["quota"], ["operations"], ["datasets"]].map((queryKey) => client.invalidateQueries({ queryKey })));
      onDone?.();
    },
  });
  const fault = write.error instanceof ApiError ? write.error : null;
  return (
    <>
      <button
        type="button"
        className="toggle"
        data-testid={`action-${slug}`}
        onClick={() => {
          write.reset();
          setOpen(true);
        }}
      >
        {label}
      </button>
      <dialog className="sheet" ref={dialog} aria-labelledby={id} data-testid={`dialog-${slug}`}>
        <header>
          <h2 id={id}>{shown(question)}</h2>
          <button type="button" className="tool" onClick={() => setOpen(false)} aria-label={t("action.close")}>
            <Icon name="close" />
          </button>
        </header>
        <div className="write-dialog">
          <p>{effect}</p>
          {write.error && (
            <p className="form-fault" role="alert">
              {fault ? code("error", fault.code, { status: fault.status, error: fault.message }, fault.message) : String(write.error)} {fault?.hint}
            </p>
          )}
          <p className="write-acts">
            <button type="button" className={isDeletion ? "toggle danger" : "toggle"} disabled={write.isPending} onClick={() => write.mutate()} data-testid={`confirm-${slug}`}>
              {label}
            </button>
            <button type="button" className="link" onClick={() => setOpen(false)}>
              {t("tree.cancel")}
            </button>
          </p>
        </div>
      </dialog>
    </>
  );
}
