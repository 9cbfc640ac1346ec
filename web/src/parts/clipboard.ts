// Puts a text on the clipboard, also where a page that is not served over https may not write there by itself.

/** Whether the browser let the text onto the clipboard. `near`: where a field may stand for a moment; a modal dialog lets none outside be selected. */
export async function copied(text: string, near: Element): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return isCopiedBySelection(text, near);
  }
}

function isCopiedBySelection(text: string, near: Element): boolean {
  const focused = document.activeElement as HTMLElement | null;
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  field.setAttribute("aria-hidden", "true");
  near.append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    field.remove();
    focused?.focus({ preventScroll: true });
  }
}
