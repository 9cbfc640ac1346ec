// The columns of the list of components.
import type { ComponentListRow } from "../../api/types";
import { UNKNOWN } from "../../format/format";
import type { Words } from "../../i18n/locale";
import { Status } from "../../parts/Status";
import type { Column } from "../../table/columns";

/** A component's title in the reader's language. */
export const titleOf = (row: Pick<ComponentListRow, "title" | "titleZh">, locale: string): string => (locale.startsWith("zh") ? row.titleZh : row.title);

export const groupWord = (group: string, { code }: Pick<Words, "code">): string => code("components.group", group.replaceAll(" ", "-"), {}, group);

/** A box for each component that can be deployed with others by one click. */
export function tickColumn({ t }: Pick<Words, "t">, ticked: readonly string[], canTick: (row: ComponentListRow) => boolean, onTick: (id: string) => void): Column<ComponentListRow> {
  return {
    key: "tick",
    head: t("components.tick"),
    width: 60,
    fixed: true,
    unsortable: true,
    drawn: true,
    cell: (c) => canTick(c) && <input type="checkbox" checked={ticked.includes(c.id)} onChange={() => onTick(c.id)} aria-label={t("components.tickOf", { id: c.id })} data-testid={`tick-${c.id}`} />,
  };
}

export function componentColumns(words: Pick<Words, "t" | "code" | "locale">): Column<ComponentListRow>[] {
  const { t, locale } = words;
  return [
    { key: "group", head: t("components.group"), width: 110, cell: (c) => groupWord(c.group, words) },
    { key: "id", head: t("components.name"), width: 130, mono: true, fixed: true, title: (c) => c.id, cell: (c) => c.id },
    { key: "title", head: t("components.title"), width: 210, title: (c) => titleOf(c, locale), cell: (c) => titleOf(c, locale) },
    { key: "state", head: t("components.state"), width: 130, title: (c) => c.message, cell: (c) => <Status word={c.state ?? "Unknown"} /> },
    { key: "version", head: t("components.version"), width: 90, cell: (c) => c.version || UNKNOWN },
    { key: "available", head: t("components.available"), width: 90, cell: (c) => c.available || UNKNOWN },
    { key: "managedBy", head: t("components.managedBy"), width: 90, cell: (c) => (c.managedBy ? words.code("components.by", c.managedBy, {}, c.managedBy) : UNKNOWN) },
    { key: "namespace", head: t("col.namespace"), width: 130, mono: true, cell: (c) => c.namespace || UNKNOWN },
  ];
}
