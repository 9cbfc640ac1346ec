// Prices of nodes: what was entered, nodes without a price, a new price, and the end of one. Prices are only added, so a report of an earlier day stays the same.
import { Button } from "antd";
import { useId, useMemo, useState } from "react";
import { usePrices } from "../../api/queries";
import type { PriceClassRow, PriceList, PriceRow } from "../../api/types";
import { count, gpus, heldHours, memory, money, percent, UNKNOWN } from "../../format/format";
import { useWords, type Words } from "../../i18n/locale";
import { Icon } from "../../parts/Icon";
import { Answered, Bones, Empty } from "../../parts/States";
import { useDialog } from "../../parts/useDialog";
import type { Column } from "../../table/columns";
import { DataTable } from "../../table/DataTable";
import { CsvHead } from "../../table/RowsCsv";
import { useMayWrite } from "../datasets/useMayWrite";
import { PriceForm, type PriceStart } from "./PriceForm";
import { labelsText } from "./words";

const MAX_ROWS = 8;
const DAY_LETTERS = 10;

/** Begins the form of a price. `null` where nothing can be written: without sign-in. */
type Start = (start: PriceStart) => void;

/** The list, or in its place the form of a price. */
export function PricesDialog({ onClose }: { onClose: () => void }) {
  const prices = usePrices().data;
  const [start, setStart] = useState<PriceStart | null>(null);
  if (start && prices) return <PriceForm start={start} prices={prices} onClose={() => setStart(null)} />;
  return <ListDialog onStart={setStart} onClose={onClose} />;
}

function ListDialog({ onStart, onClose }: { onStart: (start: PriceStart) => void; onClose: () => void }) {
  const { t } = useWords();
  const id = useId();
  const dialog = useDialog(true);
  const asked = usePrices();
  const mayWrite = useMayWrite();
  return (
    <dialog className="sheet form-sheet" ref={dialog} onClose={onClose} aria-labelledby={id} data-testid="prices">
      <header>
        <h2 id={id}>{t("prices.title")}</h2>
        <button type="button" className="tool" onClick={onClose} aria-label={t("action.close")}>
          <Icon name="close" />
        </button>
      </header>
      <div className="write-dialog">
        <p className="dim">{t("prices.why")}</p>
        <Answered asked={asked} bones={<Bones lines={6} />}>
          {(answer) => <Lists answer={answer} onStart={mayWrite ? onStart : null} />}
        </Answered>
        <div className="form-acts">
          <Button onClick={onClose}>{t("action.close")}</Button>
          {mayWrite && (
            <Button type="primary" onClick={() => onStart({ isEnd: false, matcher: {} })} data-testid="action-add-price">
              {t("prices.add")}
            </Button>
          )}
        </div>
      </div>
    </dialog>
  );
}

function Lists({ answer, onStart }: { answer: PriceList; onStart: Start | null }) {
  const { t } = useWords();
  const columns = useMemo(() => priceColumns(t, onStart), [t, onStart]);
  const classes = useMemo(() => classColumns(t, onStart), [t, onStart]);
  return (
    <>
      <section className="section">
        <CsvHead title={t("prices.entered")} name="prices" rows={answer.items} />
        {answer.items.length === 0 ? (
          <Empty why={t("prices.none")}>{t("prices.noneNext")}</Empty>
        ) : (
          <div className="price-list">
            <DataTable name="prices" caption={t("prices.entered")} columns={columns} rows={answer.items} rowKey={(row) => String(row.id)} maxRows={MAX_ROWS} walkable />
          </div>
        )}
      </section>
      {answer.classes.length > 0 && (
        <section className="section">
          <h3>{t("prices.classes")}</h3>
          <div className="price-list">
            <DataTable name="price-classes" caption={t("prices.classes")} columns={classes} rows={answer.classes} rowKey={(row) => JSON.stringify(row)} maxRows={MAX_ROWS} walkable />
          </div>
        </section>
      )}
    </>
  );
}

/** `2026-11-01` of a time that is the beginning of a billing day is not the day of UTC: the server's text has the zone's own. */
const dayText = (text: string): string => text.slice(0, DAY_LETTERS);

function priceColumns(t: Words["t"], onStart: Start | null): Column<PriceRow>[] {
  const state = (row: PriceRow) => t(row.ended ? "prices.isEnd" : row.inForce ? "prices.inForce" : "prices.notInForce");
  return [
    { key: "matcher", head: t("prices.nodes"), width: 190, mono: true, fixed: true, unsortable: true, title: (row) => labelsText(row.matcher, t), cell: (row) => labelsText(row.matcher, t) },
    { key: "nodeHour", head: t("prices.nodeHour"), width: 84, number: true, unsortable: true, cell: (row) => (row.ended ? UNKNOWN : `${money(row.nodeHour)} ${row.currency}`) },
    { key: "listNodeHour", head: t("prices.listNodeHour"), width: 84, number: true, unsortable: true, cell: (row) => money(row.listNodeHour) },
    { key: "gpuSharePercent", head: t("prices.gpuShare"), width: 66, number: true, unsortable: true, cell: (row) => (row.gpuSharePercent === null ? t("prices.default") : percent(row.gpuSharePercent)) },
    { key: "validFrom", head: t("prices.validFrom"), width: 84, unsortable: true, title: (row) => row.validFrom, cell: (row) => dayText(row.validFrom) },
    { key: "enteredAt", head: t("prices.enteredAt"), width: 100, unsortable: true, title: (row) => [row.enteredAt, row.enteredBy, row.note].filter(Boolean).join("\n"), cell: (row) => [dayText(row.enteredAt), row.enteredBy].filter(Boolean).join(" · ") },
    { key: "state", head: t("col.status"), width: 92, unsortable: true, cell: state },
    {
      key: "end",
      head: t("prices.end"),
      width: 54,
      unsortable: true,
      cell: (row) =>
        row.ended || onStart === null ? (
          ""
        ) : (
          <button type="button" className="link" onClick={() => onStart({ isEnd: true, matcher: row.matcher })} aria-label={t("prices.endOf", { nodes: labelsText(row.matcher, t) })}>
            {t("prices.end")}
          </button>
        ),
    },
  ];
}

function classColumns(t: Words["t"], onStart: Start | null): Column<PriceClassRow>[] {
  return [
    { key: "labels", head: t("prices.labels"), width: 300, mono: true, fixed: true, unsortable: true, title: (row) => labelsText(row.labels, t), cell: (row) => labelsText(row.labels, t) },
    { key: "gpus", head: t("prices.gpus"), width: 60, number: true, unsortable: true, cell: (row) => gpus(row.gpus) },
    { key: "cores", head: t("prices.cores"), width: 60, number: true, unsortable: true, cell: (row) => count(row.cores) },
    { key: "memoryMiB", head: t("prices.memory"), width: 90, number: true, unsortable: true, cell: (row) => memory(row.memoryMiB) },
    { key: "nodeHours", head: t("prices.hours"), width: 80, number: true, unsortable: true, cell: (row) => heldHours(row.nodeHours) },
    {
      key: "price",
      head: t("prices.price"),
      width: 90,
      unsortable: true,
      cell: (row) =>
        row.price === null && onStart !== null ? (
          <button type="button" className="link" onClick={() => onStart({ isEnd: false, matcher: row.labels })}>
            {t("prices.addFor")}
          </button>
        ) : (
          row.price === null ? t("prices.without") : `#${row.price}`
        ),
    },
  ];
}
