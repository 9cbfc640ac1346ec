// A native dialog that is open while `open` is true: it keeps the focus inside and returns it.
import { type RefObject, useEffect, useEffectEvent, useRef } from "react";

/**
 * `onClose`: of a dialog that stays in the document while it is closed. It must set `open` to false.
 *
 * The browser reports a closed dialog in a later task. Esc therefore asks for the end (`cancel`) instead of closing the dialog, and a
 * report that comes when the dialog is open again is dropped: a key pressed in between would open a dialog that closes at once, or none.
 */
export function useDialog(open: boolean, onClose?: () => void): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null);
  const close = useEffectEvent(() => onClose?.());
  const isKept = onClose !== undefined;
  useEffect(() => {
    const element = dialog.current;
    if (!element || !isKept) return;
    const onCancel = (event: Event) => {
      if (event.target !== element) return; // of a field inside
      event.preventDefault();
      close();
    };
    const onClosed = () => {
      if (!element.open) close();
    };
    element.addEventListener("cancel", onCancel);
    element.addEventListener("close", onClosed);
    return () => {
      element.removeEventListener("cancel", onCancel);
      element.removeEventListener("close", onClosed);
    };
  }, [isKept]);
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
    if (!open && dialog.current?.open) dialog.current.close();
  }, [open]);
  return dialog;
}
