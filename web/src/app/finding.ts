// What does a text mean? Everything that bears it, the nearest first, each with why it was found.

export type HitKind = "pages" | "nodes" | "jobs" | "holders" | "users" | "leaves" | "namespaces" | "actions" | "commands";

export interface Hit {
  readonly kind: HitKind;
  readonly name: string;
  /** In which of its fields the text stands, as words. */
  readonly why: string;
  /** Where it leads, what it does, or what it puts on the clipboard. */
  readonly to?: string;
  readonly act?: () => void;
  readonly copy?: string;
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

/** The name in three parts, the middle one what was asked for. */
export function marked(name: string, asked: string): readonly [string, string, string] {
  const q = asked.trim();
  const at = name.toLowerCase().indexOf(q.toLowerCase());
  return q === "" || at < 0 ? [name, "", ""] : [name.slice(0, at), name.slice(at, at + q.length), name.slice(at + q.length)];
}
