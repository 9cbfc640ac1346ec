// One box for everything (Ctrl/⌘ K, `/`): pages, nodes, jobs, who holds GPUs, users, quotas, namespaces, actions, commands to copy.
import { Input, type InputRef } from "antd";
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { useQueryClient } from "@tanstack/react-query";
import { apiAddress } from "../api/fetch";
import { useClockFace, useHolders, useJobs, useMe, useMoveClock, useNodes, useSearch } from "../api/queries";
import { type CommandObject, objectCommands } from "../commands/objects";
import { shown } from "../format/shown";
import { useWords } from "../i18n/locale";
import { useLook } from "../look/theme";
import { copied } from "../parts/clipboard";
import { Icon } from "../parts/Icon";
import { useDialog } from "../parts/useDialog";
import { navigate } from "../router/router";
import { EACH, type Findable, foundThere, type Hit, hitsOf, holderPage, joined, keyOf, marked, path } from "./finding";
import { namedCommands, namedPages } from "./named";

const TYPING_MS = 150;
const ONE = new URLSearchParams({ size: "1" });

export function FindBox({ open, onClose, onHelp }: { open: boolean; onClose: () => void; onHelp: () => void }) {
  const { t } = useWords();
  const dialog = useDialog(open, onClose);
  return (
    <dialog className="sheet find" ref={dialog} aria-label={t("search.placeholder")} data-testid="find-box">
      {open && <Finder onClose={onClose} onHelp={onHelp} />}
    </dialog>
  );
}

function Finder({ onClose, onHelp }: { onClose: () => void; onHelp: () => void }) {
  const { t } = useWords();
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState<string | null>(null);
  const [taken, setTaken] = useState({ text: "", isDone: false });
  const [refused, setRefused] = useState("");
  const now = text.trim();
  const { hits, more, isAsking, quiet } = useHits(now, useLate(now), onHelp);
  const at = Math.max(0, hits.findIndex((hit) => keyOf(hit) === chosen));
  const list = useId();
  const input = useRef<InputRef>(null);
  useEffect(() => input.current?.focus(), []);
  const take = async (hit: Hit | undefined) => {
    if (!hit) return;
    if (hit.copy) {
      setTaken({ text: hit.copy, isDone: await copied(hit.copy, input.current?.nativeElement ?? document.body) });
      return;
    }
    try {
      await hit.send?.();
    } catch (error) {
      setRefused(String((error as Error).message));
      return;
    }
    onClose();
    if (hit.to) navigate(hit.to);
    hit.act?.();
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const next = step && hits[at + step];
    if (step) event.preventDefault();
    if (next) {
      setChosen(keyOf(next));
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
          setChosen(null);
          setTaken({ text: "", isDone: false });
          setRefused("");
        }}
        onKeyDown={onKey}
      />
      <div className="hits" role="listbox" id={list} aria-label={t("search.placeholder")} aria-busy={isAsking}>
        {[...new Set(hits.map((hit) => hit.kind))].map((kind) => (
          <div key={kind} role="group" aria-label={t(`find.${kind}`)}>
            <h3 aria-hidden="true">{t(`find.${kind}`)}</h3>
            {hits.map((hit, i) => hit.kind === kind && <Option key={keyOf(hit)} id={`${list}-${i}`} hit={hit} now={now} isChosen={i === at} said={hit.copy && taken.text === hit.copy ? t(taken.isDone ? "copy.done" : "find.notCopied") : ""} onPoint={() => setChosen(keyOf(hit))} onTake={() => void take(hit)} />)}
          </div>
        ))}
      </div>
      <div className="state foot">
        <p role="status">{hits.length > 0 ? t("find.keys") : now === "" ? t("find.hint") : isAsking ? t("state.loading") : quiet ? "" : t("search.nothing", { q: now })}</p>
        {more > 0 && <p data-testid="find-more">{t("find.more", { n: more })}</p>}
        {(refused || quiet) && (
          <p role="status" data-testid="find-quiet">
            {refused || quiet}
          </p>
        )}
      </div>
    </>
  );
}

interface OptionProps {
  id: string;
  hit: Hit;
  now: string;
  isChosen: boolean;
  /** What became of copying it, in the place of why it was found. */
  said: string;
  onPoint: () => void;
  onTake: () => void;
}

function Option({ id, hit, now, isChosen, said, onPoint, onTake }: OptionProps) {
  return (
    // eslint-disable-next-line jsx-a11y/click-events-have-key-events -- the combobox has the keys
    <div className="hit" role="option" id={id} tabIndex={-1} aria-selected={isChosen} onPointerMove={onPoint} onClick={onTake}>
      <span className={hit.kind === "pages" || hit.kind === "actions" ? "clip" : "mono clip"}>
        <Marked name={hit.name} asked={now} />
      </span>
      <span className="dim clip">{said || <Marked name={hit.why} asked={now} />}</span>
      {hit.copy && <Icon name="copy" />}
    </div>
  );
}

function Marked({ name, asked }: { name: string; asked: string }) {
  const [before, found, after] = marked(shown(name), asked);
  return (
    <bdi>
      {before}
      {found && <mark>{found}</mark>}
      {after}
    </bdi>
  );
}

interface Hits {
  readonly hits: readonly Hit[];
  /** Number of further results on the server. */
  readonly more: number;
  readonly isAsking: boolean;
  /** Why this may not be everything; "" when it is. */
  readonly quiet: string;
}

/** Results for `now`, the current text. The server receives `asked`, which follows it; results of an older answer are matched again. */
function useHits(now: string, asked: string, onHelp: () => void): Hits {
  const { t, code } = useWords();
  const params = useMemo(() => new URLSearchParams({ q: asked, size: String(EACH) }), [asked]);
  const some = asked !== "";
  const [inNodes, inJobs, inHolders, inAll] = [useNodes(params, some), useJobs(params, some), useHolders(params, some), useSearch(asked)];
  const answers = [inNodes, inJobs, inHolders, inAll];
  const actions = useActions(onHelp);
  const facets = [useJobs(ONE).data?.facets, useHolders(ONE).data?.facets];
  const [nodes, jobs, holders] = [inNodes.data?.items ?? [], inJobs.data?.items ?? [], inHolders.data?.items ?? []];
  const choices = (...names: readonly string[]) => [...new Set(facets.flatMap((each) => names.flatMap((name) => each?.[name] ?? [])))];
  const found = inAll.data ? foundThere(inAll.data, { label: t("find.label"), name: t("find.name") }) : [];
  const of = (kind: Findable["kind"]) => found.filter((thing) => thing.kind === kind);
  const things: Findable[] = [
    ...namedPages(t),
    ...nodes.map((n): Findable => ({ kind: "nodes", to: path("nodes", n.name), fields: [["", n.name], [t("col.gpuModel"), n.gpuModel], [t("col.ip"), n.ip]] })),
    ...of("nodes"),
    ...of("gpus"),
    ...jobs.map((j): Findable => ({ kind: "jobs", to: path("jobs", j.namespace, j.type, j.name), fields: [["", j.name], [t("col.namespace"), j.namespace], [t("col.user"), j.user], [t("col.jobType"), j.type], ["UID", j.uid]] })),
    ...of("jobs"),
    ...holders.map((h): Findable => ({ kind: "holders", to: holderPage(h.namespace, h.name), fields: [["", h.name], [t("holders.owner"), h.owner], [t("col.user"), h.user], [t("col.node"), h.node], [t("col.namespace"), h.namespace]] })),
    ...of("holders"),
    ...of("pods"),
    ...choices("user").map((user): Findable => ({ kind: "users", to: `/gpus?user=${encodeURIComponent(user)}`, fields: [["", user]] })),
    ...choices("leaf").map((leaf): Findable => ({ kind: "leaves", to: `/quota?path=${encodeURIComponent(leaf)}`, fields: [["", leaf]] })),
    ...choices("namespace", "job_namespace").map((name): Findable => ({ kind: "namespaces", to: `/gpus?namespace=${encodeURIComponent(name)}`, fields: [["", name]] })),
    ...actions,
    ...namedCommands(),
    ...nodes.slice(0, 2).flatMap((n) => commands({ kind: "node", name: n.name }, t("copy.command"))),
    ...jobs.slice(0, 2).flatMap((j) => commands({ kind: "job", namespace: j.namespace, type: j.type, name: j.name, live: j.live, waits: Boolean(j.waiting), hasPods: j.instances.running > 0 }, t("copy.command"))),
    ...holders.slice(0, 2).flatMap((h) => commands({ kind: "holder", namespace: h.namespace, name: h.name }, t("copy.command"))),
  ];
  const hits = hitsOf(now, joined(things));
  const isAsking = now !== asked || answers.some((each) => each.isFetching);
  const counted = inAll.isPlaceholderData || isAsking ? 0 : (inAll.data?.total ?? 0);
  const failed = answers.find((each) => each.error)?.error;
  const unread = inAll.data?.warnings[0];
  const quiet = failed ? t("find.failed", { error: failed.message }) : unread ? code("warning", unread.code, { source: unread.source, message: unread.message, ...unread.values }, unread.message) : "";
  return { hits, more: Math.max(0, counted - hits.filter((hit) => hit.isCounted).length), isAsking, quiet: now === "" ? "" : quiet };
}

/** The first facts about it; its page has all. */
const commands = (of: CommandObject, word: string): Findable[] => objectCommands(of).slice(0, 2).map((text): Findable => ({ kind: "commands", copy: text, fields: [[word, text]] }));

const csv = (route: string) => () => location.assign(apiAddress(route, new URLSearchParams({ format: "csv" })));

function useActions(onHelp: () => void): readonly Findable[] {
  const { t, locale, setLocale } = useWords();
  const { shade, setShade } = useLook();
  const client = useQueryClient();
  const me = useMe().data;
  const face = useClockFace().data;
  const { mutateAsync: move } = useMoveClock(me?.csrf ?? "");
  const time: Findable[] = me?.features.clock && face ? [{ kind: "actions", send: () => move({ action: face.isPaused ? "resume" : "pause" }), fields: [["", t(face.isPaused ? "find.goOn" : "find.pause")]] }] : [];
  const actions: readonly (readonly [string, () => void])[] = [
    [t(shade === "light" ? "frame.dark" : "frame.light"), () => setShade(shade === "light" ? "dark" : "light")],
    [t("frame.language"), () => setLocale(locale === "en" ? "zh-CN" : "en")],
    [t("action.refresh"), () => void client.refetchQueries({ type: "active" })],
    [t("keys.title"), onHelp],
    [`${t("title.nodes")} · CSV`, csv("/nodes")],
    [`${t("title.jobs")} · CSV`, csv("/jobs")],
    [`${t("title.holders")} · CSV`, csv("/holders")],
  ];
  return [...actions.map(([name, act]): Findable => ({ kind: "actions", act, fields: [["", name]] })), ...time];
}

function useLate(text: string): string {
  const [late, setLate] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setLate(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return late;
}
