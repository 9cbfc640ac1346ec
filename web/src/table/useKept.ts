// A query that the server refuses removes no rows: those of the query before stay, marked as older.
import { useMemo, useState } from "react";

interface Asked<T> {
  readonly data: T | undefined;
  readonly error: Error | null;
  readonly errorUpdateCount: number;
  readonly isPlaceholderData: boolean;
  readonly refetch: () => unknown;
}

export interface Kept<T> {
  readonly data: T | undefined;
  readonly error: Error | null;
  readonly errorUpdateCount: number;
  readonly refetch: () => unknown;
  /** What the rows are the answer to. */
  readonly shown: URLSearchParams;
}

interface Answered<T> {
  readonly data: T;
  readonly to: string;
}

const ORDER: readonly string[] = ["sort", "page", "size"];
const rowsMeant = (query: string): string => new URLSearchParams([...new URLSearchParams(query)].filter(([key]) => !ORDER.includes(key))).toString();

/** Other filters mean other rows: of those nothing is kept. */
export const isSameButOrder = (one: string, other: string): boolean => rowsMeant(one) === rowsMeant(other);

export function useKept<T>({ data, error, errorUpdateCount, isPlaceholderData, refetch }: Asked<T>, asking: URLSearchParams): Kept<T> {
  const to = asking.toString();
  const [last, setLast] = useState<Answered<T> | null>(null);
  if (data !== undefined && !isPlaceholderData && (last?.data !== data || last.to !== to)) setLast({ data, to });
  const kept = data === undefined && error && last && isSameButOrder(last.to, to) ? last : null;
  const shown = useMemo(() => new URLSearchParams(kept?.to ?? to), [kept?.to, to]);
  return { data: kept?.data ?? data, error, errorUpdateCount, refetch, shown };
}
