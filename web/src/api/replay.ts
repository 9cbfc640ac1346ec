// The replay of the past: the last one that any administrator asked for, and how it is begun and cancelled.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getJson, sendWrite } from "./fetch";
import { useMe } from "./queries";
import type { QuotaReplayState, ReplayOrder } from "./types";

const PATH = "/quota/replay";
const KEY = ["replay"];
/** `resting`: another administrator may begin one. */
const PAUSES_MS = { running: 1_000, resting: 30_000 };

export const useReplay = (enabled: boolean) =>
  useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => getJson<QuotaReplayState>(PATH, undefined, signal),
    refetchInterval: ({ state }) => (state.data ? PAUSES_MS[state.data.state === "running" ? "running" : "resting"] : false),
    retry: false,
    enabled,
  });

/** Begins the replay that is asked for; null cancels the one that runs. */
export function useReplayWrite() {
  const client = useQueryClient();
  const csrf = useMe().data?.csrf ?? "";
  return useMutation({
    mutationFn: (order: Partial<ReplayOrder> | null) => sendWrite<QuotaReplayState>(order ? "POST" : "DELETE", PATH, order, csrf),
    onSuccess: (state) => client.setQueryData(KEY, state),
    onError: () => client.invalidateQueries({ queryKey: KEY }),
  });
}
