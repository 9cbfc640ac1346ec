// Commands that print the content of a table or an object, behind one small button.
import { Popover } from "antd";
import { type KeyboardEvent, useRef, useState } from "react";
import { apiAddress } from "../api/fetch";
import { useWords } from "../i18n/locale";
import { Command } from "../parts/Copy";
import { Icon } from "../parts/Icon";
import { apiCommand, type CommandTable, leftOut, tableCommands } from "./commands";
import { type CommandObject, objectAddress, objectCommands } from "./objects";

export function EqualCommand({ table, path, params }: { table: CommandTable; path: string; params: URLSearchParams }) {
  const { t } = useWords();
  const without = leftOut(table, params);
  const notes = [
    ...(table === "holders" || table === "groups" ? [t("command.allPods")] : []),
    ...(without.length > 0 ? [t("command.leftOut", { filters: without.join(", ") })] : []),
  ];
  return <Lines slug={table} notes={notes} lines={[...tableCommands(table, params), apiCommand(location.origin, apiAddress(path), params)]} />;
}

export function ObjectCommand({ of }: { of: CommandObject }) {
  const [path, params] = objectAddress(of);
  return <Lines slug={of.kind} lines={[...objectCommands(of), apiCommand(location.origin, apiAddress(path), params)]} />;
}

/** `notes`: what the first commands show otherwise than the table; the address of the API shows the very rows. */
function Lines({ slug, lines, notes = [] }: { slug: string; lines: readonly string[]; notes?: readonly string[] }) {
  const { t } = useWords();
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const leave = (event: KeyboardEvent) => {
    const stops = list.current?.querySelectorAll("button") ?? [];
    const isOut = event.key === "Tab" && document.activeElement === stops[event.shiftKey ? 0 : stops.length - 1];
    if (event.key !== "Escape" && !isOut) return;
    // The list is at the end of the document: leaving it returns the focus to where it was opened.
    event.preventDefault();
    event.stopPropagation();
    setOpen(false);
    button.current?.focus();
  };
  const content = (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- its buttons have the focus, it handles the keys that leave them
    <div className="menu-list commands" role="dialog" aria-label={t("command.equal")} ref={list} data-testid="equal-commands" onKeyDown={leave}>
      <h3>{t("command.equal")}</h3>
      {notes.map((note) => (
        <p key={note} className="dim" data-testid="command-note">
          {note}
        </p>
      ))}
      {lines.map((text) => (
        <Command key={text} text={text} />
      ))}
    </div>
  );
  return (
    <Popover trigger="click" placement="bottomRight" content={content} arrow={false} destroyOnHidden rootClassName="commands-box" open={open} onOpenChange={setOpen} afterOpenChange={(isOpen) => isOpen && list.current?.querySelector("button")?.focus({ preventScroll: true })}>
      <button type="button" ref={button} aria-haspopup="dialog" aria-expanded={open} className="tool" title={t("command.equal")} aria-label={t("command.equal")} data-testid={`action-command-${slug}`}>
        <Icon name="command" />
      </button>
    </Popover>
  );
}
