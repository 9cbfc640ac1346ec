// The commands that say the same as a table, behind one small button.
import { Popover } from "antd";
import { apiAddress } from "../api/fetch";
import { useWords } from "../i18n/locale";
import { Command } from "../parts/Copy";
import { Icon } from "../parts/Icon";
import { apiCommand, type CommandTable, tableCommands } from "./commands";

export function EqualCommand({ table, path, params }: { table: CommandTable; path: string; params: URLSearchParams }) {
  const { t } = useWords();
  const content = (
    <div className="menu-list commands" data-testid="equal-commands">
      <h3>{t("command.equal")}</h3>
      {[...tableCommands(table, params), apiCommand(location.origin, apiAddress(path), params)].map((text) => (
        <Command key={text} text={text} />
      ))}
    </div>
  );
  return (
    <Popover trigger="click" placement="bottomRight" content={content} arrow={false}>
      <button type="button" className="tool" title={t("command.equal")} aria-label={t("command.equal")} data-testid={`action-command-${table}`}>
        <Icon name="command" />
      </button>
    </Popover>
  );
}
