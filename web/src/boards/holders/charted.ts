// Under which filters do the charts show the pods of the table?
import type { Holder } from "../../api/types";

/** What the charts know themselves; by all else the pods of the table are asked for by name. */
const KNOWN: readonly string[] = ["namespace", "sort", "page", "size"];

/** The filters under which the charts show what the table does. */
export function charted(asking: URLSearchParams, rows: readonly Pick<Holder, "namespace" | "name">[]): URLSearchParams {
  const isNarrower = [...asking.keys()].some((key) => !KNOWN.includes(key));
  const namespaces = isNarrower ? rows.map((row) => row.namespace) : asking.getAll("namespace");
  const pods = isNarrower ? rows.map((row) => row.name) : [];
  return new URLSearchParams([...[...new Set(namespaces)].map((name) => ["namespace", name]), ...[...new Set(pods)].map((name) => ["pod", name])]);
}
