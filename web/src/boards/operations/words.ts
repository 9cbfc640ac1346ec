// Words of operations in the reader's language.
import type { Words } from "../../i18n/locale";

export const kindWord = (kind: string, { code }: Pick<Words, "code">): string => code("operations.kind", kind, {}, kind);

export const stateWord = (state: string, { code }: Pick<Words, "code">): string => code("status", state.toLowerCase(), {}, state);

/** `dataset/NAMESPACE/NAME` without its first word. */
export const subjectWord = (subject: string): string => subject.replace(/^(dataset|component|installation)\//, "");

/** The page of what an operation works on; `null` where there is none. */
export function subjectPage(subject: string): string | null {
  const [of, namespace, name] = subject.split("/");
  if (of === "installation" && namespace) return `/components?${new URLSearchParams({ open: namespace.split(",")[0] ?? "" })}`;
  if (of === "component" && namespace) return `/components?${new URLSearchParams({ open: namespace })}`;
  return of === "dataset" && namespace && name ? `/datasets?${new URLSearchParams({ namespace, q: name })}` : null;
}

/** Seconds of a step that runs or has ended; `null` before. `now`: the cluster's time in milliseconds. */
export function stepSeconds(startedAt: string | null, endedAt: string | null, now: number): number | null {
  if (!startedAt) return null;
  const end = endedAt ? Date.parse(endedAt) : now;
  return Math.max(0, (end - Date.parse(startedAt)) / 1000);
}
