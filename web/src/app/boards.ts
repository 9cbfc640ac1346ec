// Which boards are there, where do they live, and which key leads to them? Menu order is this order.
import type { MessageKey } from "../i18n/translate";
import type { IconName } from "../parts/Icon";

export interface BoardEntry {
  readonly path: string;
  readonly title: MessageKey;
  readonly key: string;
  readonly icon: IconName;
  /** In the menu of those who are signed in. */
  readonly isForSignedIn?: boolean;
  /** In the menu of administrators who are signed in. */
  readonly isForAdmins?: boolean;
}

export const BOARDS: readonly BoardEntry[] = [
  { path: "/overview", title: "board.overview", key: "o", icon: "overview" },
  { path: "/mine", title: "board.mine", key: "m", icon: "mine" },
  { path: "/nodes", title: "board.nodes", key: "n", icon: "nodes" },
  { path: "/gpus", title: "board.holders", key: "u", icon: "holders" },
  { path: "/devices", title: "board.devices", key: "d", icon: "devices" },
  { path: "/jobs", title: "board.jobs", key: "j", icon: "jobs" },
  { path: "/submit", title: "board.submit", key: "b", icon: "submit", isForSignedIn: true },
  { path: "/serving", title: "board.serving", key: "s", icon: "serving" },
  { path: "/datasets", title: "board.datasets", key: "e", icon: "datasets" },
  { path: "/quota", title: "board.quota", key: "q", icon: "quota" },
  { path: "/usage", title: "board.usage", key: "f", icon: "usage" },
  { path: "/idle", title: "board.idle", key: "i", icon: "idle" },
  { path: "/health", title: "board.health", key: "h", icon: "health" },
  { path: "/components", title: "board.components", key: "c", icon: "components", isForAdmins: true },
  { path: "/operations", title: "board.operations", key: "r", icon: "operations", isForAdmins: true },
  { path: "/users", title: "board.users", key: "p", icon: "mine", isForAdmins: true },
  { path: "/groups", title: "board.groups", key: "t", icon: "holders", isForAdmins: true },
  { path: "/audit", title: "board.audit", key: "a", icon: "rows", isForAdmins: true },
];

export type Place =
  | { readonly board: "overview" | "mine" | "nodes" | "holders" | "devices" | "jobs" | "submit" | "serving" | "datasets" | "components" | "operations" | "quota" | "usage" | "idle" | "quota-tree" | "health" | "access" | "users" | "groups" | "audit" }
  | { readonly board: "node"; readonly name: string }
  | { readonly board: "job"; readonly id: readonly [namespace: string, type: string, name: string] }
  | { readonly board: "operation"; readonly id: string }
  | { readonly board: "none" };

/** `/jobs/team-a/mpijob/x` → the job's page. Broken percent signs lead nowhere rather than to an exception. */
export function placeOf(path: string): Place {
  const parts = path.split("/").filter(Boolean).map(decoded);
  const [first = "overview", ...rest] = parts;
  if (first === "nodes" && rest.length === 1) return { board: "node", name: rest[0] as string };
  if (first === "jobs" && rest.length === 3) return { board: "job", id: rest as unknown as [string, string, string] };
  if (first === "operations" && rest.length === 1) return { board: "operation", id: rest[0] as string };
  if (rest.length === 0 && first === "me") return { board: "access" };
  if (first === "quota" && rest.length === 1 && rest[0] === "tree") return { board: "quota-tree" };
  if (rest.length === 0 && first === "gpus") return { board: "holders" };
  if (rest.length === 0 && (first === "overview" || first === "mine" || first === "nodes" || first === "devices" || first === "jobs" || first === "submit" || first === "serving" || first === "datasets" || first === "components" || first === "operations" || first === "quota" || first === "usage" || first === "idle" || first === "health" || first === "users" || first === "groups" || first === "audit")) return { board: first };
  return { board: "none" };
}

/** Where Esc leads from a detail page: its board. `null` on a board, which has nothing above it. */
export function boardAbove(path: string): string | null {
  const { board } = placeOf(path);
  if (board === "node") return "/nodes";
  if (board === "quota-tree") return "/quota";
  if (board === "operation") return "/operations";
  return board === "job" ? "/jobs" : null;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
