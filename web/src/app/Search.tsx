// One box for nodes and jobs by name. Arrow keys choose, Enter goes there; it asks after a pause, not per letter.
import { Input } from "antd";
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { useJobs, useNodes } from "../api/queries";
import { useWords } from "../i18n/locale";
import { Icon } from "../parts/Icon";
import { navigate } from "../router/router";

interface Hit {
  readonly kind: "nodes" | "jobs";
  readonly name: string;
  readonly note: string;
  readonly to: string;
}

const TYPING_MS = 200;
const HITS_EACH = "6";

export function Search() {
  const { t } = useWords();
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const asked = useLate(text.trim());
  const hits = useHits(asked);
  const list = useId();
  const box = useRef<HTMLDivElement>(null);
  const leave = () => {
    setOpen(false);
    setText("");
    (document.activeElement as HTMLElement | null)?.blur();
  };
  const go = (hit: Hit | undefined) => {
    if (!hit) return;
    leave();
    navigate(hit.to);
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setAt((i) => Math.max(0, Math.min(hits.length - 1, i + step)));
    } else if (event.key === "Enter") go(hits[at]);
    else if (event.key === "Escape") {
      event.preventDefault();
      leave();
    }
  };
  const shown = open && asked !== "";
  return (
    <div className="search" ref={box} data-testid="search" onBlur={(event) => !box.current?.contains(event.relatedTarget) && setOpen(false)}>
      <Input
        value={text}
        prefix={<Icon name="search" />}
        suffix={text ? undefined : <kbd>/</kbd>}
        placeholder={t("search.placeholder")}
        aria-label={t("search.placeholder")}
        role="combobox"
        aria-expanded={shown}
        aria-controls={list}
        aria-activedescendant={shown && hits[at] ? `${list}-${at}` : undefined}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
          setOpen(true);
        }}
        onFocus={() => setOpen(true)}
        onKeyDown={onKey}
      />
      {shown && (
        <div className="hits" role="listbox" id={list} aria-label={t("search.placeholder")}>
          {hits.length === 0 && <div className="state">{t("search.nothing", { q: asked })}</div>}
          {hits.map((hit, i) => (
            <div key={hit.to} role="presentation">
              {hits[i - 1]?.kind !== hit.kind && <h3>{t(`board.${hit.kind}`)}</h3>}
              {/* eslint-disable-next-line jsx-a11y/click-events-have-key-events -- the combobox has the keys */}
              <div className="hit" role="option" id={`${list}-${i}`} tabIndex={-1} aria-selected={i === at} onPointerDown={(event) => event.preventDefault()} onPointerMove={() => setAt(i)} onClick={() => go(hit)}>
                <span className="mono clip">{hit.name}</span>
                <span className="dim">{hit.note}</span>
              </div>
            </div>
          ))}
        </div>
      )}
    </div>
  );
}

function useHits(q: string): readonly Hit[] {
  const params = useMemo(() => new URLSearchParams({ q, size: HITS_EACH }), [q]);
  const nodes = useNodes(params, q !== "").data?.items;
  const jobs = useJobs(params, q !== "").data?.items;
  return useMemo(() => {
    if (q === "") return [];
    const fromNodes = (nodes ?? []).map((n): Hit => ({ kind: "nodes", name: n.name, note: n.gpuModel, to: `/nodes/${encodeURIComponent(n.name)}` }));
    const fromJobs = (jobs ?? []).map((j): Hit => ({ kind: "jobs", name: j.name, note: j.namespace, to: `/jobs/${[j.namespace, j.type, j.name].map(encodeURIComponent).join("/")}` }));
    return [...fromNodes, ...fromJobs];
  }, [q, nodes, jobs]);
}

function useLate(text: string): string {
  const [late, setLate] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setLate(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return late;
}
