// Writing the quota tree: its preview, the write, and the versions that the server keeps.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getJson, sendWrite } from "./fetch";
import { useMe } from "./queries";
import type { QuotaTreePreview, QuotaTreeVersions, QuotaTreeWritten, TreeNodeOrder } from "./types";

const PATH = "/quota/tree";

export interface TreeOrder {
  readonly version: string;
  readonly nodes: readonly TreeNodeOrder[];
  readonly createNamespaces: boolean;
}

export function useTreePreview() {
  const csrf = useMe().data?.csrf ?? "";
  return useMutation({
    mutationFn: ({ version, nodes, createNamespaces }: TreeOrder) => sendWrite<QuotaTreePreview>("PUT", PATH, { nodes, createNamespaces }, csrf, version, new URLSearchParams({ dryRun: "true" })),
  });
}

export function useTreeWrite() {
  const client = useQueryClient();
  const csrf = useMe().data?.csrf ?? "";
  return useMutation({
    mutationFn: ({ version, nodes, createNamespaces }: TreeOrder) => sendWrite<QuotaTreeWritten>("PUT", PATH, { nodes, createNamespaces }, csrf, version),
    onSuccess: () => client.invalidateQueries({ queryKey: ["quota"] }),
  });
}

export const useTreeVersions = (enabled: boolean) => useQuery({ queryKey: ["quota", "tree-versions"], queryFn: ({ signal }) => getJson<QuotaTreeVersions>(`${PATH}/versions`, undefined, signal), enabled });
