// Who uses what of each leaf. All users of a leaf and `-` add up to what the leaf uses.
import { useMemo } from "react";
import type { QuotaAnswer } from "../../api/types";
import { amount, amountUnit } from "../../format/format";
import { useWords } from "../../i18n/locale";
import { unitWord } from "../../i18n/units";
import { Panel } from "../../parts/Panel";
import { type Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { RowsCsv } from "../../table/RowsCsv";
import { type UserLine, userLines } from "./rows";

const MAX_ROWS = 10;

/** Raw numbers, the unit in the head. */
const userCsv = ({ leaf, user, used }: UserLine, units: ReadonlyMap<string, string>): object => ({ leaf, user, ...Object.fromEntries([...units].map(([resource, unit]) => [`${resource} (${unit})`, used.get(resource) ?? 0])) });

/** Nothing if no pod names its user. */
export function UserUse({ answer }: { answer: QuotaAnswer }) {
  const { t } = useWords();
  const lines = useMemo(() => userLines(answer.items), [answer.items]);
  if (lines.every((line) => line.user === null)) return null;
  const named = answer.resources.filter((resource) => lines.some((line) => line.used.has(resource)));
  const units = new Map(answer.items.map((row) => [row.resource, row.unit]));
  const columns: Column<UserLine>[] = [
    { key: "leaf", head: t("col.quotaName"), width: 180, mono: true, fixed: true, unsortable: true, cell: (line) => line.leaf },
    { key: "user", head: t("col.user"), width: 140, unsortable: true, cell: (line) => line.user ?? "-" },
    ...named.map(
      (resource): Column<UserLine> => ({
        key: resource,
        head: resource,
        unit: unitWord(amountUnit(units.get(resource) ?? "count"), t),
        width: 120,
        number: true,
        unsortable: true,
        cell: (line) => amount(units.get(resource) ?? "count", line.used.get(resource) ?? 0),
      }),
    ),
  ];
  return (
    <Panel slug="quota-users" title={t("panel.quotaUsers")} tools={<RowsCsv name="quota-users" rows={lines.map((line) => userCsv(line, units))} />} flush>
      <DataTable name="quota-users" caption={t("panel.quotaUsers")} columns={columns} rows={lines} rowKey={(line) => line.key} maxRows={MAX_ROWS} walkable />
    </Panel>
  );
}
