// The table of holders or groups of holders, and its empty state.
import type { ComponentProps } from "react";
import { FIRST_JOB } from "../../commands/commands";
import { useWords } from "../../i18n/locale";
import { Command } from "../../parts/Copy";
import { Empty } from "../../parts/States";
import { ListTable } from "../../table/ListTable";

export const FILTERS = ["namespace", "kind", "user", "leaf", "node", "status", "owner", "q"] as const;

type RowsProps<Row> = Omit<ComponentProps<typeof ListTable<Row>>, "slug" | "title" | "filters" | "noneMatch" | "none">;

export function Rows<Row>(props: RowsProps<Row>) {
  const { t } = useWords();
  const none = (
    <Empty why={t("holders.none")}>
      <Command text={FIRST_JOB} />
    </Empty>
  );
  return <ListTable<Row> slug="holders" title={t("title.holders")} filters={FILTERS} noneMatch={t("holders.noneMatch")} none={none} {...props} />;
}
