// The rows of a replay, and the question that a form asks.
import type { QuotaReplay, QuotaReplayState, ReplayFigures, ReplayLeaf, ReplayOrder } from "../../../api/types";
import type { Words } from "../../../i18n/locale";
import type { MessageKey } from "../../../i18n/translate";
import { asQuestion, type Changes } from "../changes";

export const REPLAY_PERIODS = ["24h", "7d", "30d", "90d"] as const;
export type ReplayPeriod = (typeof REPLAY_PERIODS)[number];
export const PERIOD_WORDS: Readonly<Record<ReplayPeriod, MessageKey>> = { "24h": "usage.24h", "7d": "usage.7d", "30d": "usage.30d", "90d": "replay.90d" };
export const DOING_WORDS: Readonly<Record<string, MessageKey>> = { reading: "replay.reading", "in-force": "replay.in-force", asked: "replay.askedFor" };

const WHATS = ["happened", "inForce", "asked"] as const;
type What = (typeof WHATS)[number];
export const WHAT_WORDS: Readonly<Record<What, MessageKey>> = { happened: "replay.happened", inForce: "replay.inForce", asked: "replay.askedRow" };
export const CAUSE_WORDS: Readonly<Record<string, MessageKey>> = {
  gap: "replay.cause.gap",
  evicted: "replay.cause.evicted",
  scheduler: "replay.cause.scheduler",
  consequence: "replay.cause.consequence",
  unknown: "replay.cause.unknown",
};

/** `leaf`: "" = all of them. */
export interface ReplayRow extends ReplayFigures {
  readonly key: string;
  readonly leaf: string;
  readonly what: What;
}

export interface FreeRow {
  readonly what: What;
  readonly gpuHours: number;
  readonly cost: string | null;
}

/** Up to three rows for each leaf, the sum of all last. */
export const replayRows = (found: QuotaReplay): ReplayRow[] => [...found.leaves, found.totals].flatMap(rowsOf);

const rowsOf = (leaf: ReplayLeaf): ReplayRow[] =>
  WHATS.flatMap((what) => {
    const figures = leaf[what];
    return figures ? [{ ...figures, key: `${leaf.leaf} ${what}`, leaf: leaf.leaf, what }] : [];
  });

export const freeRows = (found: QuotaReplay): FreeRow[] => [
  { what: "happened", ...found.freeHappened },
  { what: "inForce", ...found.freeInForce },
  { what: "asked", ...found.freeAsked },
];

/** Null without a change. `more`: nodes of the model. */
export function replayOrder(period: ReplayPeriod, changes: Changes, model: string, more: number): Partial<ReplayOrder> | null {
  const isMore = model !== "" && Number.isInteger(more) && more !== 0;
  if (changes.size === 0 && !isMore) return null;
  return { period, changes: asQuestion(changes), nodes: isMore ? [`${model}=${more > 0 ? "+" : ""}${more}`] : [] };
}

/** What a replay was asked for, in words. */
export function changesText(state: Pick<QuotaReplayState, "changes" | "hasTree" | "nodes">, t: Words["t"]): string {
  const bounds = state.changes.flatMap(({ min, max }) => [min, max]).filter((each) => each !== null).length;
  return [...(state.hasTree ? [t("replay.tree")] : []), ...(bounds > 0 ? [t("replay.bounds", { n: bounds })] : []), ...state.nodes].join(", ");
}
