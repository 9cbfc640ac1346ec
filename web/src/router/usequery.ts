// The query string as React state: read it, change it. Filters replace nothing silently: every change of meaning is a step for Back.
import { useCallback, useMemo } from "react";
import { type QueryChange, withQuery } from "./query";
import { currentPlace, navigate, usePlace } from "./router";

export type SetQuery = (change: QueryChange, how?: "push" | "replace") => void;

export function useQueryState(): [URLSearchParams, SetQuery] {
  const { query } = usePlace();
  const params = useMemo(() => new URLSearchParams(query), [query]);
  const set = useCallback<SetQuery>((change, how = "push") => {
    const here = currentPlace();
    navigate(here.path + withQuery(here.query, change), how);
  }, []);
  return [params, set];
}

/** A filter change starts again at the first page. */
export const filtered = (change: QueryChange): QueryChange => ({ ...change, page: null });
