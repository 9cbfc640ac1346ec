// A list of the server as a table: its panel with tools, rows, pages, and why it is empty.
import type { ReactNode } from "react";
import type { CommandTable } from "../commands/commands";
import { useWords } from "../i18n/locale";
import { Panel } from "../parts/Panel";
import { Answered, type Asked, Bones, Empty } from "../parts/States";
import { parsePaging, parseSort, renderSort } from "../router/query";
import { useQueryState } from "../router/usequery";
import { type Column, isShown, useTableView } from "./columns";
import { DataTable, type TreeRows } from "./DataTable";
import { BeyondLastPage, TableFoot, TableTools } from "./TableTools";

interface Props<Row> {
  name: string;
  slug: string;
  title: string;
  /** Beside the title. */
  note?: ReactNode;
  /** The route that the rows come from. */
  path: string;
  command: CommandTable;
  asked: Asked<{ items: readonly Row[]; total: number }>;
  /** What of the address was asked of the server. */
  asking: URLSearchParams;
  filters: readonly string[];
  columns: readonly Column<Row>[];
  rowKey: (row: Row) => string;
  selected?: string | null;
  /** Absent: rows have no panel; keys move between them all the same. */
  onOpen?: (row: Row) => void;
  /** Rows below rows: only those of the first level are counted as rows of the list. */
  tree?: TreeRows<Row>;
  /** Text if nothing matches the filters, and text if there are no rows at all. */
  noneMatch: string;
  none: ReactNode;
}

export function ListTable<Row>({ name, slug, title, note, path, command, asked, asking, filters, columns, rowKey, selected, onOpen, tree, noneMatch, none }: Props<Row>) {
  const { t } = useWords();
  const [, set] = useQueryState();
  const view = useTableView(name);
  const paging = parsePaging(asking);
  const clear = () => set(Object.fromEntries([...filters, "page"].map((key) => [key, null])));
  const nothing = filters.some((key) => asking.has(key)) ? (
    <Empty why={noneMatch}>
      <div className="actions">
        <button type="button" className="link" onClick={clear}>
          {t("filter.clear")}
        </button>
      </div>
    </Empty>
  ) : (
    none
  );
  return (
    <Panel slug={slug} title={title} note={note} tools={<TableTools view={view} columns={columns} csv={{ path, params: asking }} command={command} />} flush>
      <Answered asked={asked} bones={<Bones lines={10} />}>
        {(list) => {
          if (list.total === 0) return nothing;
          if (list.items.length === 0) return <BeyondLastPage page={paging.page} set={set} />;
          return (
            <>
              <DataTable
                name={name}
                caption={title}
                columns={columns.filter((c) => isShown(c, view))}
                rows={list.items}
                rowKey={rowKey}
                density={view.density}
                sort={parseSort(asking.get("sort"))}
                onSort={(sort) => set({ sort: renderSort(sort), page: null })}
                {...(selected === undefined ? {} : { selected })}
                {...(onOpen ? { onOpen } : { walkable: true })}
                offset={(paging.page - 1) * paging.size}
                total={list.total + (tree ? list.items.filter((row) => tree.levelOf(row) > 1).length : 0)}
                {...(tree && { tree })}
              />
              <TableFoot total={list.total} paging={paging} set={set} />
            </>
          );
        }}
      </Answered>
    </Panel>
  );
}
