// A quota tree that is being edited: what was read, what it has become, and what another administrator made of it meanwhile.
import type { QuotaTreePage, QuotaTreeRow, TreeNodeOrder } from "../../../api/types";
import type { Bound } from "../changes";

export interface DraftNode {
  /** Stays while it is renamed. */
  readonly id: string;
  readonly parent: string | null;
  readonly name: string;
  /** Its name in the tree that was read; "" for a new node. */
  readonly formerly: string;
  readonly min: Readonly<Record<string, string>>;
  readonly max: Readonly<Record<string, string>>;
  readonly namespaces: string;
  /** `key=value`, separated by `; `. */
  readonly attributes: string;
  /** The attributes that are stored, which a write leaves as they are while the text is the same. */
  readonly stored: string;
}

export interface Draft {
  readonly version: string;
  readonly resources: readonly string[];
  /** Parents before children. */
  readonly nodes: readonly DraftNode[];
}

export const DEFAULT_RESOURCES = ["cpu", "memory", "nvidia.com/gpu", "aliyun.com/gpu", "aliyun.com/gpu-mem"];
let made = 0;
const newId = () => `new-${(made += 1)}`;

export function draftOf(page: QuotaTreePage): Draft {
  const nodes = page.items.map((row) => nodeOf(row, page.managed));
  return { version: page.treeVersion, resources: page.managed, nodes: nodes.length > 0 ? nodes : [{ id: newId(), parent: null, name: "root", formerly: "", min: {}, max: {}, ...NOTHING }] };
}

const NOTHING = { namespaces: "", attributes: "", stored: "" };

const encoded = (value: string, signs: RegExp): string => value.replace(signs, (sign) => encodeURIComponent(sign));
const decoded = (value: string): string => value.trim().replace(/%(?:25|3B|3D|0A|0D)/g, (sign) => decodeURIComponent(sign));

/** As one line: what would end a key or a value is percent-encoded. */
export const attributesText = (attributes: Readonly<Record<string, string>>): string =>
  Object.entries(attributes)
    .map(([key, value]) => `${encoded(key, /[%;=\n\r]/g)}=${encoded(value, /[%;\n\r]/g)}`)
    .join("; ");

export function attributesOf(line: string): Record<string, string> {
  const parts = line.split(";").filter((part) => part.trim() !== "");
  return Object.fromEntries(
    parts.map((part) => {
      const at = part.includes("=") ? part.indexOf("=") : part.length;
      return [decoded(part.slice(0, at)), decoded(part.slice(at + 1))] as const;
    }),
  );
}

function nodeOf(row: QuotaTreeRow, resources: readonly string[]): DraftNode {
  const min: Record<string, string> = {};
  const max: Record<string, string> = {};
  for (const bounds of row.bounds.filter(({ resource }) => resources.includes(resource))) {
    min[bounds.resource] = bounds.minText === "0" ? "" : bounds.minText;
    max[bounds.resource] = bounds.maxText;
  }
  const attributes = attributesText(row.attributes);
  return { id: row.name, parent: row.parent || null, name: row.name, formerly: row.name, min, max, namespaces: row.namespaces.join(", "), attributes, stored: attributes };
}

export const spacesOf = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);

/** As the server takes it. Of the root an empty bound is "unlimited"; of others there is none. */
export function ordersOf(draft: Draft): TreeNodeOrder[] {
  const names = new Map(draft.nodes.map((node) => [node.id, node.name]));
  return draft.nodes.map((node) => ({
    name: node.name.trim(),
    parent: node.parent === null ? "" : (names.get(node.parent) ?? "").trim(),
    formerly: node.formerly,
    min: boundsOf(node, "min", draft.resources),
    max: boundsOf(node, "max", draft.resources),
    namespaces: spacesOf(node.namespaces),
    attributes: node.attributes.trim() === node.stored ? null : attributesOf(node.attributes),
  }));
}

function boundsOf(node: DraftNode, bound: Bound, resources: readonly string[]): Record<string, string> {
  const isRoot = node.parent === null;
  return Object.fromEntries(resources.map((resource) => [resource, (node[bound][resource] ?? "").trim()] as const).filter(([, text]) => isRoot || text !== ""));
}

export const childrenOf = (draft: Draft, id: string): readonly DraftNode[] => draft.nodes.filter((node) => node.parent === id);

export function depthOf(draft: Draft, node: DraftNode): number {
  let depth = 0;
  for (let above = node.parent; above !== null; depth += 1) above = draft.nodes.find((each) => each.id === above)?.parent ?? null;
  return depth;
}

/** The part of the name below its parent's. */
export function segmentOf(draft: Draft, node: DraftNode): string {
  const above = draft.nodes.find((each) => each.id === node.parent)?.name;
  return above && node.name.startsWith(`${above}.`) ? node.name.slice(above.length + 1) : node.name;
}

const setNode = (draft: Draft, id: string, change: Partial<DraftNode>): Draft => ({ ...draft, nodes: draft.nodes.map((node) => (node.id === id ? { ...node, ...change } : node)) });

export const setSpaces = (draft: Draft, id: string, namespaces: string): Draft => setNode(draft, id, { namespaces });

export const setAttributes = (draft: Draft, id: string, attributes: string): Draft => setNode(draft, id, { attributes });

export function setBound(draft: Draft, id: string, resource: string, bound: Bound, text: string): Draft {
  const node = draft.nodes.find((each) => each.id === id);
  return node ? setNode(draft, id, { [bound]: { ...node[bound], [resource]: text } }) : draft;
}

/** The names of all nodes below follow, where they begin with it. */
export function rename(draft: Draft, id: string, segment: string): Draft {
  const node = draft.nodes.find((each) => each.id === id);
  if (!node) return draft;
  const own = segmentOf(draft, node);
  const before = node.name;
  const after = before.slice(0, before.length - own.length) + segment;
  const below = new Set([id]);
  for (const each of draft.nodes) if (each.parent !== null && below.has(each.parent)) below.add(each.id);
  return {
    ...draft,
    nodes: draft.nodes.map((each) => (each.id === id ? { ...each, name: after } : below.has(each.id) && each.name.startsWith(`${before}.`) ? { ...each, name: after + each.name.slice(before.length) } : each)),
  };
}

/** A new leaf below the node, after what is below it already. Its name is a full path where those of its siblings are. */
export function addChild(draft: Draft, id: string): { draft: Draft; id: string } {
  const parent = draft.nodes.find((each) => each.id === id);
  if (!parent) return { draft, id };
  const siblings = childrenOf(draft, id);
  const isDotted = siblings.length === 0 || siblings.some((each) => each.name.startsWith(`${parent.name}.`));
  const taken = new Set(draft.nodes.map((each) => each.name));
  let number = siblings.length + 1;
  const named = () => (isDotted ? `${parent.name}.${number}` : `${parent.name}-${number}`);
  while (taken.has(named())) number += 1;
  const node: DraftNode = { id: newId(), parent: id, name: named(), formerly: "", min: {}, max: {}, ...NOTHING };
  const last = lastBelow(draft, id);
  return { draft: { ...draft, nodes: draft.nodes.toSpliced(last + 1, 0, node) }, id: node.id };
}

function lastBelow(draft: Draft, id: string): number {
  const below = new Set([id]);
  let last = draft.nodes.findIndex((each) => each.id === id);
  draft.nodes.forEach((each, index) => {
    if (each.parent !== null && below.has(each.parent)) {
      below.add(each.id);
      last = index;
    }
  });
  return last;
}

export const removeNode = (draft: Draft, id: string): Draft => ({ ...draft, nodes: draft.nodes.filter((each) => each.id !== id) });

/** The resources of the tree; bounds of a resource that is taken away are forgotten when the tree is written. */
export const setResources = (draft: Draft, resources: readonly string[]): Draft => ({ ...draft, resources });

/** Nodes whose name or namespaces contain the text, with all that is above them. */
export function foundIn(draft: Draft, text: string): readonly DraftNode[] {
  const needle = text.trim().toLowerCase();
  if (!needle) return draft.nodes;
  const shown = new Set<string>();
  for (const node of draft.nodes) {
    if (![node.name, node.namespaces].some((each) => each.toLowerCase().includes(needle))) continue;
    for (let id: string | null = node.id; id !== null && !shown.has(id); ) {
      shown.add(id);
      const at: string = id;
      id = draft.nodes.find((each) => each.id === at)?.parent ?? null;
    }
  }
  return draft.nodes.filter((node) => shown.has(node.id));
}

export interface ThreeWay {
  readonly node: string;
  readonly cell: string;
  readonly base: string;
  readonly mine: string;
  readonly theirs: string;
  /** Both changed it, and not alike. */
  readonly clash: boolean;
}

type Cells = ReadonlyMap<string, ReadonlyMap<string, string>>;

function cellsOf(draft: Draft): Cells {
  return new Map(
    draft.nodes.map((node) => [
      node.formerly || node.name,
      new Map([
        ["name", node.name],
        ["namespaces", spacesOf(node.namespaces).join(", ")],
        ["attributes", node.attributes.trim()],
        ...draft.resources.flatMap((resource) => (["min", "max"] as const).map((bound) => [`${bound}.${resource}`, (node[bound][resource] ?? "").trim()] as const)),
      ]),
    ]),
  );
}

/** Every cell that I or the other changed. An absent node has no cells. */
export function threeWay(base: Draft, mine: Draft, theirs: Draft): ThreeWay[] {
  const [first, second, third] = [cellsOf(base), cellsOf(mine), cellsOf(theirs)];
  const rows: ThreeWay[] = [];
  for (const node of new Set([...first.keys(), ...second.keys(), ...third.keys()])) {
    const cells = new Set([first, second, third].flatMap((each) => [...(each.get(node)?.keys() ?? [])]));
    for (const cell of cells) {
      const [was, own, other] = [first, second, third].map((each) => each.get(node)?.get(cell) ?? "") as [string, string, string];
      if (own === was && other === was) continue;
      rows.push({ node, cell, base: was, mine: own, theirs: other, clash: own !== was && other !== was && own !== other });
    }
  }
  return rows;
}

/** What I changed of `base`, done to the tree as it is now. My value stays where both changed a cell. */
export function rebased(base: Draft, mine: Draft, theirs: Draft): Draft {
  const before = new Map(base.nodes.map((node) => [node.formerly, node]));
  const kept = new Map(mine.nodes.filter((node) => node.formerly).map((node) => [node.formerly, node]));
  const removed = new Set(base.nodes.map((node) => node.formerly).filter((name) => name && !kept.has(name)));
  const added = mine.nodes.filter((node) => !node.formerly);
  const resources = [...theirs.resources.filter((each) => mine.resources.includes(each) || !base.resources.includes(each)), ...mine.resources.filter((each) => !base.resources.includes(each) && !theirs.resources.includes(each))];
  const nodes = theirs.nodes
    .filter((node) => !removed.has(node.formerly) || childrenOf(theirs, node.id).length > 0)
    .map((node) => {
      const [was, own] = [before.get(node.formerly), kept.get(node.formerly)];
      if (!was || !own) return node;
      const changed = (bound: Bound) => Object.fromEntries(Object.entries(own[bound]).filter(([resource, text]) => text !== (was[bound][resource] ?? "")));
      return { ...node, name: own.name === was.name ? node.name : own.name, namespaces: own.namespaces === was.namespaces ? node.namespaces : own.namespaces, attributes: own.attributes === was.attributes ? node.attributes : own.attributes, min: { ...node.min, ...changed("min") }, max: { ...node.max, ...changed("max") } };
    });
  let draft: Draft = { version: theirs.version, resources, nodes };
  for (const node of added) {
    const above = mine.nodes.find((each) => each.id === node.parent);
    const parent = draft.nodes.find((each) => each.id === node.parent || (above?.formerly && each.formerly === above.formerly));
    if (!parent) continue;
    draft = { ...draft, nodes: draft.nodes.toSpliced(lastBelow(draft, parent.id) + 1, 0, { ...node, parent: parent.id }) };
  }
  return draft;
}

/** A version of the store, as an edit of the tree as it is now. */
export function restored(nodes: readonly TreeNodeOrder[], now: Draft): Draft {
  const known = new Map(now.nodes.map((node) => [node.formerly, node.stored]));
  const resources = [...new Set(nodes.filter((node) => !node.parent).flatMap((node) => [...Object.keys(node.min ?? {}), ...Object.keys(node.max ?? {})]))];
  return {
    version: now.version,
    resources,
    nodes: nodes.map((node) => ({ id: node.name, parent: node.parent || null, name: node.name, formerly: known.has(node.name) ? node.name : "", min: node.min ?? {}, max: node.max ?? {}, namespaces: (node.namespaces ?? []).join(", "), attributes: attributesText(node.attributes ?? {}), stored: known.get(node.name) ?? "" })),
  };
}

const text = (value: string): string => (/^[A-Za-z][\w./-]*$/.test(value) && !/^(true|false|yes|no|on|off|null|y|n)$/i.test(value) ? value : JSON.stringify(value));

/** The spec as YAML. What the editor does not show is not in it. */
export function yamlOf(draft: Draft): string {
  const lines = ["apiVersion: scheduling.sigs.k8s.io/v1beta1", "kind: ElasticQuotaTree", "metadata:", "  name: elasticquotatree", "  namespace: kube-system", "spec:", "  root:"];
  const write = (node: DraftNode, indent: string, first: string) => {
    lines.push(`${first}name: ${text(node.name)}`);
    for (const bound of ["min", "max"] as const) {
      const bounds = Object.entries(boundsOf(node, bound, draft.resources));
      if (bounds.length > 0) lines.push(`${indent}${bound}:`, ...bounds.map(([resource, amount]) => `${indent}  ${text(resource)}: ${JSON.stringify(amount || "2147483647")}`));
    }
    const spaces = spacesOf(node.namespaces);
    if (spaces.length > 0) lines.push(`${indent}namespaces:`, ...spaces.map((each) => `${indent}  - ${text(each)}`));
    const attributes = Object.entries(attributesOf(node.attributes));
    if (attributes.length > 0) lines.push(`${indent}attributes:`, ...attributes.map(([key, value]) => `${indent}  ${text(key)}: ${JSON.stringify(value)}`));
    const children = childrenOf(draft, node.id);
    if (children.length > 0) lines.push(`${indent}children:`);
    for (const child of children) write(child, `${indent}    `, `${indent}  - `);
  };
  const [root] = draft.nodes;
  if (root) write(root, "    ", "    ");
  return `${lines.join("\n")}\n`;
}
