// What does a key press mean? `g` waits a second for the board's letter. Keys typed into a field stay there.

import { BOARDS } from "./boards";

export type Command = { readonly kind: "board"; readonly key: string } | { readonly kind: "search" } | { readonly kind: "help" } | { readonly kind: "time" } | { readonly kind: "row"; readonly step: 1 | -1 } | { readonly kind: "back" };

export interface KeyState {
  /** When `g` was pressed, in ms; `null` if it was not. */
  readonly goSince: number | null;
}

export interface KeyPress {
  readonly key: string;
  readonly typing: boolean;
  readonly modified: boolean;
}

const GO_MS = 1000;
const BOARD_KEYS: readonly string[] = BOARDS.map((board) => board.key);

/** Whether `key` is the letter that a `g` waits for: then it is no step between rows. */
export const isAwaited = ({ goSince }: KeyState, key: string, now: number): boolean => goSince !== null && now - goSince <= GO_MS && BOARD_KEYS.includes(key);

/** Of the page as a whole: tables see a key before the frame does. */
export const keys: { state: KeyState } = { state: { goSince: null } };

/** Pure, so that the sequence can be tested without a document. */
export function readKey(state: KeyState, press: KeyPress, now: number): [KeyState, Command | null] {
  const idle: KeyState = { goSince: null };
  if (press.typing || press.modified) return [idle, null];
  if (isAwaited(state, press.key, now)) return [idle, { kind: "board", key: press.key }];
  switch (press.key) {
    case "g":
      return [{ goSince: now }, null];
    case "/":
      return [idle, { kind: "search" }];
    case "?":
      return [idle, { kind: "help" }];
    case "t":
      return [idle, { kind: "time" }];
    case "j":
      return [idle, { kind: "row", step: 1 }];
    case "k":
      return [idle, { kind: "row", step: -1 }];
    case "Escape":
      return [idle, { kind: "back" }];
    default:
      return [idle, null];
  }
}

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}

/** `j` or `k` with the focus outside the rows: on from the row whose panel is open, else the first row of the page's first table. */
export function focusRow(key: string): void {
  const open = document.querySelector<HTMLElement>('main .table-box tr[aria-selected="true"]');
  if (!open) {
    document.querySelector<HTMLElement>('main .table-box tr[tabindex="0"]')?.focus();
    return;
  }
  open.focus({ preventScroll: true });
  open.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
}
