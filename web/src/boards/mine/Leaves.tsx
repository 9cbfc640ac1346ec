// What may my leaf still have? Used, mine of it, guaranteed, and what could be borrowed above that now.
import { useMemo } from "react";
import type { MyLeaf } from "../../api/types";
import { amount, amountUnit } from "../../format/format";
import { useWords, type Words } from "../../i18n/locale";
import { unitWord } from "../../i18n/units";
import { Panel } from "../../parts/Panel";
import { Link } from "../../router/Link";
import type { Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { RowsCsv } from "../../table/RowsCsv";
import { Bar } from "../quota/QuotaBar";
import { minText, minWords } from "../quota/rows";
import { OVER_WIDTH, UsedAmount } from "../quota/UsedAmount";

type Row = MyLeaf["resources"][number];

export function Leaves({ leaves }: { leaves: readonly MyLeaf[] }) {
  const { t } = useWords();
  const columns = useMemo(() => leafColumns(t), [t]);
  return (
    <>
      {leaves.map((leaf) => (
        <Panel
          key={leaf.path}
          slug="my-leaf"
          title={t("mine.leaf")}
          note={
            <Link className="mono" to={`/quota?path=${encodeURIComponent(leaf.path)}`}>
              {leaf.path}
            </Link>
          }
          tools={<RowsCsv name={`${leaf.path}-mine`} rows={leaf.resources} />}
          flush
        >
          <DataTable name="my-leaf" caption={t("mine.leaf")} columns={columns} rows={leaf.resources} rowKey={(row) => row.resource} walkable />
        </Panel>
      ))}
    </>
  );
}

function leafColumns(t: Words["t"]): Column<Row>[] {
  const figure = (key: "used" | "mine" | "guaranteed" | "max" | "borrowable", head: string, none: string): Column<Row> => ({
    key,
    head,
    width: key === "used" ? OVER_WIDTH : 104,
    number: true,
    unsortable: true,
    cell: (row) => {
      const value = row[key];
      const text = value === null ? none : `${amount(row.unit, value)} ${unitWord(amountUnit(row.unit), t)}`.trim();
      return key === "used" ? <UsedAmount text={text} unit={row.unit} over={row.max === null ? 0 : row.used - row.max} t={t} /> : text;
    },
  });
  const none = t("mine.noLimit");
  return [
    { key: "resource", head: t("col.resource"), width: 170, mono: true, fixed: true, unsortable: true, cell: (row) => row.resource },
    { key: "bar", head: t("mine.use"), width: 180, drawn: true, unsortable: true, cell: (row) => <Bar of={{ ...row, min: row.guaranteed, requested: row.used }} t={t} /> },
    figure("used", t("mine.used"), none),
    figure("mine", t("mine.usedByMe"), none),
    { ...figure("guaranteed", t("mine.guaranteedAmount"), none), title: (row) => minWords(row.unit, row.guaranteed, row.guaranteedWritten, t), cell: (row) => `${minText(row.unit, row.guaranteed, row.guaranteedWritten)} ${unitWord(amountUnit(row.unit), t)}`.trim() },
    figure("borrowable", t("mine.borrowable"), none),
    figure("max", t("mine.max"), none),
  ];
}
