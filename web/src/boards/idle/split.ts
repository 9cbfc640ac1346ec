// The parts of the GPU money of nodes, in the order of the bar.
import type { GpuMoney } from "../../api/types";

export const SPLIT = ["used", "idle", "unknown", "free", "stranded", "broken"] as const;
export type SplitPart = (typeof SPLIT)[number];

export interface Part {
  readonly part: SplitPart;
  readonly hours: number;
  readonly cost: string | null;
}

export const splitOf = (of: GpuMoney): readonly Part[] => SPLIT.map((part) => ({ part, hours: of[`${part}GpuHours`], cost: of[`${part}Cost`] }));
