// Does this page show the past? `at` of the address, on the pages that have it.
import { usePlace } from "../router/router";

/** Pages that show the cluster as it was. On others `at` means nothing. */
const PAGES: readonly string[] = ["/", "/overview", "/nodes", "/jobs"];

export const atOf = (path: string, query: string): string | null => (PAGES.includes(path) ? new URLSearchParams(query).get("at") : null);

export function useAt(): string | null {
  const { path, query } = usePlace();
  return atOf(path, query);
}
