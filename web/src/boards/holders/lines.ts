// The lines of holders together: groups, and below those that are unfolded their pods.
import type { Holder, HolderGroup } from "../../api/types";
import { pick } from "../../router/query";
import { groupKey, holderKey, within } from "./columns";

/** Pods of one group that are asked for and shown below it; the last line leads to all of them. */
export const PODS_MAX = 50;
/** Groups that are unfolded at once. */
export const UNFOLDED_MAX = 8;

export interface Below {
  readonly pods?: readonly Holder[] | undefined;
  readonly total?: number | undefined;
  readonly error?: Error | null;
}

export type Line =
  | { readonly is: "group"; readonly group: HolderGroup }
  | { readonly is: "pod"; readonly group: HolderGroup; readonly pod: Holder }
  | { readonly is: "all"; readonly group: HolderGroup; readonly shown: number; readonly total: number }
  | { readonly is: "wait"; readonly group: HolderGroup }
  | { readonly is: "failed"; readonly group: HolderGroup; readonly error: Error };

export const lineKey = (line: Line): string => `${groupKey(line.group)} ${line.is} ${line.is === "pod" ? holderKey(line.pod) : ""}`;

export function linesOf(groups: readonly HolderGroup[], belowOf: ReadonlyMap<string, Below>): Line[] {
  return groups.flatMap((group): Line[] => {
    const below = belowOf.get(groupKey(group));
    const head: Line = { is: "group", group };
    if (!below) return [head];
    if (!below.pods) return [head, below.error ? { is: "failed", group, error: below.error } : { is: "wait", group }];
    const pods = below.pods.slice(0, PODS_MAX);
    return [head, ...pods.map((pod): Line => ({ is: "pod", group, pod })), { is: "all", group, shown: pods.length, total: below.total ?? pods.length }];
  });
}

/** The filters of the page together with those that made the group. */
export function filtersOf(by: string, group: HolderGroup, asking: URLSearchParams, filters: readonly string[]): URLSearchParams {
  const query = pick(asking, filters);
  for (const [name, value] of new URLSearchParams(within(by, group))) query.set(name, value);
  return query;
}

/** Unfolds or folds one; the one that was unfolded first gives way. */
export function toggled(unfolded: readonly string[], key: string, isOpen: boolean): string[] {
  const others = unfolded.filter((each) => each !== key);
  return isOpen ? [...others, key].slice(-UNFOLDED_MAX) : others;
}
