// What does the query string mean? Pure reading and writing of filters, sort and page. Defaults are left out, so addresses stay short.

export type QueryChange = Readonly<Record<string, string | readonly string[] | number | null | undefined>>;

/** Applies a change to a query string. `null`, `""` and `[]` remove a key; key order is kept, so equal states give equal addresses. */
export function withQuery(query: string, change: QueryChange): string {
  const params = new URLSearchParams(query);
  for (const [key, value] of Object.entries(change)) {
    const values = valuesOf(value);
    params.delete(key);
    for (const v of values) params.append(key, v);
  }
  const text = params.toString().replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%2C", ",");
  return text ? `?${text}` : "";
}

function valuesOf(value: QueryChange[string]): readonly string[] {
  if (value === null || value === undefined || value === "") return [];
  if (typeof value === "number") return [String(value)];
  return typeof value === "string" ? [value] : value.filter((v) => v !== "");
}

export interface Sort {
  readonly key: string;
  readonly descending: boolean;
}

export function parseSort(text: string | null): Sort | null {
  const first = text?.split(",")[0];
  if (!first) return null;
  return first.startsWith("-") ? { key: first.slice(1), descending: true } : { key: first, descending: false };
}

export function renderSort(sort: Sort | null): string | null {
  return sort && (sort.descending ? `-${sort.key}` : sort.key);
}

/** The next state of a column head: ascending → descending → as the page came. Numbers start descending: people look for the largest. */
export function nextSort(current: Sort | null, key: string, startDescending: boolean): Sort | null {
  if (current?.key !== key) return { key, descending: startDescending };
  if (current.descending === startDescending) return { key, descending: !startDescending };
  return null;
}

export const PAGE_SIZES = [50, 100, 200, 500] as const;

export interface Paging {
  readonly page: number;
  readonly size: number;
}

const SIZE_MAX = 500;

/** Page and size as the API accepts them; anything else in the address falls back to page 1, size 50. */
export function parsePaging(params: URLSearchParams): Paging {
  const page = Number(params.get("page") ?? 1);
  const size = Number(params.get("size") ?? PAGE_SIZES[0]);
  return {
    page: Number.isSafeInteger(page) && page >= 1 ? page : 1,
    size: Number.isInteger(size) && size >= 1 && size <= SIZE_MAX ? size : PAGE_SIZES[0],
  };
}

/** The query of a list: the named keys of an address, and the page of its foot. */
export function listQuery(params: URLSearchParams, keys: readonly string[]): URLSearchParams {
  const asked = pick(params, keys);
  const { page, size } = parsePaging(params);
  if (page > 1) asked.set("page", String(page));
  if (size !== PAGE_SIZES[0]) asked.set("size", String(size));
  return asked;
}

/** Picks the named keys of an address, all values of each: what a route of the API is asked. */
export function pick(params: URLSearchParams, keys: readonly string[]): URLSearchParams {
  const picked = new URLSearchParams();
  for (const key of keys) for (const value of params.getAll(key)) picked.append(key, value);
  return picked;
}
