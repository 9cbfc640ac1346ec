// Names of dependencies, and the failures that every page shows.
import type { HealthRow } from "../../api/types";
import type { Words } from "../../i18n/locale";

export const WORST_FIRST: readonly string[] = ["fail", "warn", "ok", "off"];

export const healthName = (name: string, { code }: Pick<Words, "code">): string => code("health", name, {}, name);

/** Failed dependencies, except those whose inputs a warning of the page already names. */
export function unreportedFailures(rows: readonly HealthRow[], reported: ReadonlySet<string>): readonly HealthRow[] {
  return rows.filter((row) => row.state === "fail" && !(row.sources.length > 0 && row.sources.every((source) => reported.has(source))));
}
