// Results of a search text, the nearest first, each with the reason of the match.

import type { SearchAnswer, SearchHit } from "../api/types";
import { objectCommands } from "../commands/objects";

export type HitKind = "pages" | "nodes" | "gpus" | "jobs" | "holders" | "pods" | "users" | "leaves" | "namespaces" | "actions" | "commands";

export interface Hit {
  readonly kind: HitKind;
  readonly name: string;
  /** In which of its fields the text stands, as words. */
  readonly why: string;
  /** Where it leads, what it does, or what it puts on the clipboard. */
  readonly to?: string;
  readonly act?: () => void;
  /** An action that the server carries out: the box waits for its answer. */
  readonly send?: () => Promise<unknown>;
  readonly copy?: string;
  /** Found by the server's own search, which counts those that it leaves out. */
  readonly isCounted?: boolean;
}

/** A thing that can be found: fields by what they are called, the first its name. */
export interface Findable extends Omit<Hit, "why" | "name"> {
  readonly fields: readonly (readonly [word: string, text: string])[];
}

export const EACH = 6;

/** 0 the very text, 1 its beginning, 2 the beginning of a word in it, 3 anywhere; `null` not at all. */
export function nearness(text: string, q: string): number | null {
  const at = text.toLowerCase().indexOf(q);
  if (at < 0) return null;
  if (text.length === q.length) return 0;
  if (at === 0) return 1;
  return /[^\p{L}\p{N}]/u.test(text[at - 1] ?? "") ? 2 : 3;
}

/** The best of each kind, in the order of their kinds. Text of an empty question finds nothing. */
export function hitsOf(asked: string, things: readonly Findable[]): readonly Hit[] {
  const q = asked.trim().toLowerCase();
  if (q === "") return [];
  const found = things.flatMap((thing, place) => {
    const near = thing.fields.flatMap(([word, text], i) => {
      const rank = nearness(text, q);
      return rank === null ? [] : [{ word: i === 0 ? "" : `${word} ${text}`, rank: rank + (i === 0 ? 0 : 4) }];
    });
    const best = near.toSorted((a, b) => a.rank - b.rank)[0];
    return best ? [{ thing, place, ...best }] : [];
  });
  const kinds = [...new Set(things.map((thing) => thing.kind))];
  return kinds.flatMap((kind) =>
    found
      .filter((each) => each.thing.kind === kind)
      .toSorted((a, b) => a.rank - b.rank || a.place - b.place)
      .slice(0, EACH)
      .map(({ thing: { fields, ...rest }, word }) => ({ ...rest, name: fields[0]?.[1] ?? "", why: word })),
  );
}

/** What two answers know of one thing, as one thing: it is found by the fields of both. */
export function joined(things: readonly Findable[]): readonly Findable[] {
  const known = new Map<string, Findable>();
  for (const thing of things) {
    const key = keyOf(thing);
    const other = known.get(key);
    known.set(key, other ? { ...other, isCounted: Boolean(other.isCounted || thing.isCounted), fields: [...other.fields, ...thing.fields] } : thing);
  }
  return [...known.values()];
}

/** By which a hit is known again when others come before it. */
export const keyOf = (thing: Findable | Hit): string => JSON.stringify([thing.kind, thing.to ?? thing.copy ?? "", "name" in thing ? thing.name : thing.fields[0]?.[1]]);

export const path = (...parts: readonly string[]): string => `/${parts.map(encodeURIComponent).join("/")}`;

/** A hit of the server as a thing that can be found: it leads to its own page, else to what it is part of, else it is a command. */
export function foundThere(answer: Pick<SearchAnswer, "items">, words: Readonly<Record<"label" | "name", string>>): readonly Findable[] {
  const fieldOf = ({ field, text }: SearchHit): readonly [string, string] => [field === "label" || field === "name" ? words[field] : field.toUpperCase(), text];
  return answer.items.map((hit): Findable => {
    const { kind, namespace, name, job, node } = hit;
    const called = (as: string) => ({ isCounted: true, fields: [["", as], fieldOf(hit)] }) as const;
    const jobPage = path("jobs", namespace, ...job.split("/"));
    if (kind === "node") return { kind: "nodes", to: path("nodes", name), ...called(name) };
    if (kind === "gpu") return { kind: "gpus", to: path("nodes", node), ...called(`${node} GPU ${hit.gpuIndex}`) };
    if (kind === "job") return { kind: "jobs", to: jobPage, ...called(name) };
    if (hit.holdsGpu) return { kind: "holders", to: holderPage(namespace, name), ...called(name) };
    const copy = objectCommands({ kind: "holder", namespace, name }).find((line) => line.includes(" describe "));
    return { kind: "pods", ...(job ? { to: jobPage } : copy ? { copy } : {}), ...called(`${namespace}/${name}`) };
  });
}

export const holderPage = (namespace: string, name: string): string => `/gpus?q=${encodeURIComponent(name)}&open=${encodeURIComponent(`${namespace}/${name}`)}`;

/** The name in three parts, the middle one what was asked for. */
export function marked(name: string, asked: string): readonly [string, string, string] {
  const q = asked.trim();
  const at = name.toLowerCase().indexOf(q.toLowerCase());
  return q === "" || at < 0 ? [name, "", ""] : [name.slice(0, at), name.slice(at, at + q.length), name.slice(at + q.length)];
}
