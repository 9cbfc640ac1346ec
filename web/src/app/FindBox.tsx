// One box for everything (Ctrl/⌘ K, `/`): pages, nodes, jobs, who holds GPUs, users, quotas, namespaces, actions, commands to copy.
import { Input, type InputRef } from "antd";
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { useQueryClient } from "@tanstack/react-query";
import { apiAddress } from "../api/fetch";
import { useHolders, useJobs, useNodes } from "../api/queries";
import { quoted } from "../commands/commands";
import { useWords } from "../i18n/locale";
import { useLook } from "../look/theme";
import { copied } from "../parts/clipboard";
import { Icon } from "../parts/Icon";
import { useDialog } from "../parts/useDialog";
import { navigate } from "../router/router";
import { BOARDS } from "./boards";
import { EACH, type Findable, type Hit, hitsOf, marked } from "./finding";

const TYPING_MS = 150;
const ONE = new URLSearchParams({ size: "1" });

export function FindBox({ open, onClose, onHelp }: { open: boolean; onClose: () => void; onHelp: () => void }) {
  const { t } = useWords();
  const dialog = useDialog(open);
  return (
    <dialog className="sheet find" ref={dialog} onClose={onClose} aria-label={t("search.placeholder")} data-testid="find-box">
      {open && <Finder onClose={onClose} onHelp={onHelp} />}
    </dialog>
  );
}

function Finder({ onClose, onHelp }: { onClose: () => void; onHelp: () => void }) {
  const { t } = useWords();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [taken, setTaken] = useState({ text: "", isDone: false });
  const asked = useLate(text.trim());
  const { hits, isAsking, failed } = useHits(asked, onHelp);
  const list = useId();
  const input = useRef<InputRef>(null);
  useEffect(() => input.current?.focus(), []);
  const take = async (hit: Hit | undefined) => {
    if (!hit) return;
    if (hit.copy) {
      const near = input.current?.nativeElement ?? document.body;
      setTaken({ text: hit.copy, isDone: await copied(hit.copy, near) });
      return;
    }
    onClose();
    if (hit.to) navigate(hit.to);
    hit.act?.();
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setAt((i) => Math.max(0, Math.min(hits.length - 1, i + step)));
      document.getElementById(`${list}-${at + step}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") void take(hits[at]);
  };
  return (
    <>
      <Input
        ref={input}
        value={text}
        variant="borderless"
        prefix={<Icon name="search" />}
        placeholder={t("search.placeholder")}
        aria-label={t("search.placeholder")}
        role="combobox"
        aria-expanded={hits.length > 0}
        aria-controls={list}
        aria-activedescendant={hits[at] ? `${list}-${at}` : undefined}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
          setTaken({ text: "", isDone: false });
        }}
        onKeyDown={onKey}
      />
      <div className="hits" role="listbox" id={list} aria-label={t("search.placeholder")} aria-busy={isAsking}>
        {hits.map((hit, i) => (
          <div key={`${hit.kind} ${hit.name} ${hit.why} ${hit.to ?? ""}`} role="presentation">
            {hits[i - 1]?.kind !== hit.kind && <h3>{t(`find.${hit.kind}`)}</h3>}
            {/* eslint-disable-next-line jsx-a11y/click-events-have-key-events -- the combobox has the keys */}
            <div className="hit" role="option" id={`${list}-${i}`} tabIndex={-1} aria-selected={i === at} onPointerMove={() => setAt(i)} onClick={() => void take(hit)}>
              <span className={hit.kind === "pages" || hit.kind === "actions" ? "clip" : "mono clip"}>
                <Marked name={hit.name} asked={asked} />
              </span>
              <span className="dim clip">{hit.copy && taken.text === hit.copy ? t(taken.isDone ? "copy.done" : "find.notCopied") : hit.why}</span>
            </div>
          </div>
        ))}
      </div>
      <p className="state" role="status">
        {hits.length > 0 ? t("find.keys") : asked === "" ? t("find.hint") : isAsking ? t("state.loading") : failed ? t("find.failed", { error: failed.message }) : t("search.nothing", { q: asked })}
      </p>
    </>
  );
}

function Marked({ name, asked }: { name: string; asked: string }) {
  const [before, found, after] = marked(name, asked);
  return (
    <bdi>
      {before}
      {found && <mark>{found}</mark>}
      {after}
    </bdi>
  );
}

const path = (...parts: readonly string[]): string => `/${parts.map(encodeURIComponent).join("/")}`;

function useHits(q: string, onHelp: () => void): { hits: readonly Hit[]; isAsking: boolean; failed: Error | null } {
  const { t } = useWords();
  const params = useMemo(() => new URLSearchParams({ q, size: String(EACH) }), [q]);
  const some = q !== "";
  const asked = [useNodes(params, some), useJobs(params, some), useHolders(params, some)] as const;
  const actions = useActions(onHelp);
  const facets = [useJobs(ONE).data?.facets, useHolders(ONE).data?.facets];
  const [nodes, jobs, holders] = asked.map((each) => (each.isPlaceholderData ? [] : (each.data?.items ?? []))) as [NonNullable<(typeof asked)[0]["data"]>["items"], NonNullable<(typeof asked)[1]["data"]>["items"], NonNullable<(typeof asked)[2]["data"]>["items"]];
  const choices = (...names: readonly string[]) => [...new Set(facets.flatMap((each) => names.flatMap((name) => each?.[name] ?? [])))];
  const things: Findable[] = [
    ...BOARDS.map((board): Findable => ({ kind: "pages", to: board.path, fields: [["", t(board.title)], ["", board.path]] })),
    ...nodes.map((n): Findable => ({ kind: "nodes", to: path("nodes", n.name), fields: [["", n.name], [t("col.gpuModel"), n.gpuModel], [t("col.ip"), n.ip]] })),
    ...jobs.map((j): Findable => ({ kind: "jobs", to: path("jobs", j.namespace, j.type, j.name), fields: [["", j.name], [t("col.namespace"), j.namespace], [t("col.user"), j.user], [t("col.jobType"), j.type], ["UID", j.uid]] })),
    ...holders.map((h): Findable => ({ kind: "holders", to: `/gpus?q=${encodeURIComponent(h.name)}&open=${encodeURIComponent(`${h.namespace}/${h.name}`)}`, fields: [["", h.name], [t("holders.owner"), h.owner], [t("col.user"), h.user], [t("col.node"), h.node], [t("col.namespace"), h.namespace]] })),
    ...choices("user").map((user): Findable => ({ kind: "users", to: `/gpus?user=${encodeURIComponent(user)}`, fields: [["", user]] })),
    ...choices("leaf").map((leaf): Findable => ({ kind: "leaves", to: `/quota?path=${encodeURIComponent(leaf)}`, fields: [["", leaf]] })),
    ...choices("namespace", "job_namespace").map((name): Findable => ({ kind: "namespaces", to: `/gpus?namespace=${encodeURIComponent(name)}`, fields: [["", name]] })),
    ...actions,
    ...nodes.slice(0, 2).map((n): Findable => command(`kubectl describe node ${quoted(n.name)}`, t("copy.command"))),
    ...jobs.slice(0, 2).map((j): Findable => command(`arena get ${quoted(j.name)} --type=${quoted(j.type)} -n ${quoted(j.namespace)} --explain`, t("copy.command"))),
    ...holders.slice(0, 2).map((h): Findable => command(`kubectl -n ${quoted(h.namespace)} describe pod ${quoted(h.name)}`, t("copy.command"))),
  ];
  return { hits: hitsOf(q, things), isAsking: asked.some((each) => each.isFetching), failed: asked.find((each) => each.error)?.error ?? null };
}

const command = (text: string, word: string): Findable => ({ kind: "commands", copy: text, fields: [[word, text]] });

const csv = (route: string) => () => location.assign(apiAddress(route, new URLSearchParams({ format: "csv" })));

function useActions(onHelp: () => void): readonly Findable[] {
  const { t, locale, setLocale } = useWords();
  const { shade, setShade } = useLook();
  const client = useQueryClient();
  const actions: readonly (readonly [string, () => void])[] = [
    [t(shade === "light" ? "frame.dark" : "frame.light"), () => setShade(shade === "light" ? "dark" : "light")],
    [t("frame.language"), () => setLocale(locale === "en" ? "zh-CN" : "en")],
    [t("action.refresh"), () => void client.refetchQueries({ type: "active" })],
    [t("keys.title"), onHelp],
    [`${t("title.nodes")} · CSV`, csv("/nodes")],
    [`${t("title.jobs")} · CSV`, csv("/jobs")],
    [`${t("title.holders")} · CSV`, csv("/holders")],
  ];
  return actions.map(([name, act]): Findable => ({ kind: "actions", act, fields: [["", name]] }));
}

function useLate(text: string): string {
  const [late, setLate] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setLate(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return late;
}
