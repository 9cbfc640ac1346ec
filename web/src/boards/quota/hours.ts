// What the leaves of the tree held in a period, from the ledger: the hours of a node are those of the leaves at and below it.
import type { UsageRow } from "../../api/types";

type Figure = "gpuHours" | "gpuMemoryGibHours" | "coreHours" | "memoryGibHours";

/** Resources whose use the ledger counts, with the unit of their hours. */
const COUNTED: Readonly<Record<string, { readonly figure: Figure; readonly unit: string }>> = {
  "nvidia.com/gpu": { figure: "gpuHours", unit: "GPU·h" },
  "aliyun.com/gpu": { figure: "gpuHours", unit: "GPU·h" },
  "aliyun.com/gpu-mem": { figure: "gpuMemoryGibHours", unit: "GiB·h" },
  cpu: { figure: "coreHours", unit: "h" },
  memory: { figure: "memoryGibHours", unit: "GiB·h" },
};

export type HeldHours = readonly Pick<UsageRow, Figure | "name">[];

/** Rows of leaves; time outside the tree has no name. */
export const hoursOf = (rows: HeldHours): HeldHours => rows.filter((row) => row.name !== "");

/** "": the ledger does not count it. */
export const hoursUnit = (resource: string): string => COUNTED[resource]?.unit ?? "";

/** `null`: not counted. A node without any row held nothing. */
export function heldOf(rows: HeldHours, path: string, resource: string): number | null {
  const counted = COUNTED[resource];
  if (!counted) return null;
  return rows.filter(({ name }) => name === path || name.startsWith(`${path}.`)).reduce((sum, row) => sum + row[counted.figure], 0);
}
