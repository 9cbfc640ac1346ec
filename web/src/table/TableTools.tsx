// The tools of a table: which columns, how dense, the rows as CSV; and the foot that turns pages.
import { Button, Popover, Select } from "antd";
import { apiAddress } from "../api/fetch";
import { count } from "../format/format";
import { type CommandTable } from "../commands/commands";
import { EqualCommand } from "../commands/EqualCommand";
import { useWords } from "../i18n/locale";
import { Choices } from "../parts/Choices";
import { Icon } from "../parts/Icon";
import { Empty } from "../parts/States";
import { PAGE_SIZES, type Paging } from "../router/query";
import type { SetQuery } from "../router/usequery";
import { type Column, isShown, type TableView } from "./columns";

interface ToolProps<Row> {
  view: TableView;
  columns: readonly Column<Row>[];
  /** The route and query whose rows the table shows; CSV asks the same with `format=csv`. */
  csv: { path: string; params: URLSearchParams };
  /** The commands that print the same; without it the table has none. */
  command?: CommandTable;
}

export function TableTools<Row>({ view, columns, csv, command }: ToolProps<Row>) {
  const { t } = useWords();
  const params = new URLSearchParams(csv.params);
  params.delete("page");
  params.delete("size");
  params.set("format", "csv");
  const chooser = (
    <div className="menu-list">
      <Choices
        name="density"
        label={t("table.density")}
        value={view.density}
        choices={[
          { value: "normal", word: t("table.normal") },
          { value: "compact", word: t("table.compact") },
        ]}
        onChoose={view.setDensity}
      />
      <h3>{t("table.columns")}</h3>
      <div className="column-list">
        {columns.map((c) => (
          <label key={c.key}>
            <input type="checkbox" checked={isShown(c, view)} disabled={Boolean(c.fixed)} onChange={() => view.toggle(c)} />
            {c.head}
          </label>
        ))}
      </div>
    </div>
  );
  return (
    <>
      {command && <EqualCommand table={command} path={csv.path} params={csv.params} />}
      <a className="tool" href={apiAddress(csv.path, params)} download title={t("table.csv")} aria-label={t("table.csv")}>
        <Icon name="download" />
      </a>
      <Popover trigger="click" placement="bottomRight" content={chooser} arrow={false}>
        <button type="button" className="tool" title={t("table.columns")} aria-label={t("table.columns")} data-testid="action-columns">
          <Icon name="columns" />
        </button>
      </Popover>
    </>
  );
}

export function TableFoot({ total, paging, set }: { total: number; paging: Paging; set: SetQuery }) {
  const { t } = useWords();
  const first = total === 0 ? 0 : (paging.page - 1) * paging.size + 1;
  const last = Math.min(total, paging.page * paging.size);
  const sizes = [...new Set([...PAGE_SIZES, paging.size])].sort((a, b) => a - b);
  const pages = Math.max(1, Math.ceil(total / paging.size));
  return (
    <div className="table-foot">
      <span className="num" data-testid="table-range">
        {t("table.range", { first: count(first), last: count(last), total: count(total) })}
      </span>
      {total > (sizes[0] ?? 0) && (
        <div className="end">
          <Select
            size="small"
            aria-label={t("table.size")}
            value={paging.size}
            onChange={(size) => set({ size: size === PAGE_SIZES[0] ? null : size, page: null })}
            options={sizes.map((n) => ({ value: n, label: t("table.perPage", { n }) }))}
            variant="borderless"
            popupMatchSelectWidth={false}
          />
          <button type="button" className="tool" disabled={paging.page <= 1} aria-label={t("table.previous")} onClick={() => set({ page: paging.page > 2 ? paging.page - 1 : null })}>
            <Icon name="fold" />
          </button>
          <span className="num">{t("table.page", { page: paging.page, pages })}</span>
          <button type="button" className="tool" disabled={paging.page >= pages} aria-label={t("table.next")} onClick={() => set({ page: paging.page + 1 })}>
            <Icon name="unfold" />
          </button>
        </div>
      )}
    </div>
  );
}

/** Of a list that is read from the newest row on, without numbers of pages. undefined: there is nothing to go to. */
export function OlderFoot({ onNewest, onOlder }: { onNewest: (() => void) | undefined; onOlder: (() => void) | undefined }) {
  const { t } = useWords();
  if (!onNewest && !onOlder) return null;
  return (
    <div className="table-foot">
      <div className="end">
        {onNewest && (
          <Button size="small" onClick={onNewest} data-testid="action-newest">
            {t("table.newest")}
          </Button>
        )}
        {onOlder && (
          <Button size="small" onClick={onOlder} data-testid="action-older">
            {t("table.older")}
          </Button>
        )}
      </div>
    </div>
  );
}

/** An address may name a page that the list no longer has. */
export function BeyondLastPage({ page, set }: { page: number; set: SetQuery }) {
  const { t } = useWords();
  return (
    <Empty why={t("table.noPage", { page: count(page) })}>
      <div className="actions">
        <button type="button" className="link" onClick={() => set({ page: null })}>
          {t("table.firstPage")}
        </button>
      </div>
    </Empty>
  );
}
