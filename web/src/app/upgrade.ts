// Is this page older than its server? The server writes its build into the page and returns it with every `/me`; pages reload by themselves once per build.
import { isTyping } from "./keyboard";

const PLACEHOLDER = "__BUILD__";
const STORED = "fairlead.loadedFor";

/** `null` if it is not written: in development. */
export function writtenBuild(content: string | null | undefined): string | null {
  return content && content !== PLACEHOLDER ? content : null;
}

export const ownBuild = typeof document === "undefined" ? null : writtenBuild(document.querySelector<HTMLMetaElement>('meta[name="fairlead-build"]')?.content);

/** The build that the server serves now, if it is another than the page's. */
export function newerBuild(own: string | null, served: string | undefined): string | null {
  return own && served && served !== own ? served : null;
}

type Kept = Pick<Storage, "getItem" | "setItem">;

/** Whether the page may load again by itself for this build: once, and never where nothing keeps that it did. Remembers it. */
export function firstLoadFor(build: string, kept: () => Kept): boolean {
  try {
    const before = (kept().getItem(STORED) ?? "").split(" ").filter(Boolean);
    if (before.includes(build)) return false;
    kept().setItem(STORED, [...before, build].join(" "));
    return kept().getItem(STORED)?.split(" ").includes(build) ?? false;
  } catch {
    return false;
  }
}

const OPEN = "dialog[open], .ant-popover:not(.ant-popover-hidden), .ant-select-open, [data-unsaved]";

/** The user types, has a dialog open, or has unsaved changes. */
export const isBusy = (): boolean => isTyping(document.activeElement) || document.querySelector(OPEN) !== null;

const failed = new WeakSet<object>();

/** Observes errors of scripts that failed to load. */
export function hearScripts(): void {
  addEventListener("vite:preloadError", (event) => {
    const { payload } = event as Event & { payload?: unknown };
    if (typeof payload === "object" && payload !== null) failed.add(payload);
  });
}

export const isOfScript = (error: Error): boolean => failed.has(error);
