// Which cells do the filters of a board mean? The others are drawn faintly, so that the map keeps its shape.

export interface CardsMeant {
  /** On any node. */
  readonly indexes: ReadonlySet<number>;
  /** One card each, as `cardKey` has it. */
  readonly named: ReadonlySet<string>;
}

export const cardKey = (node: string, index: number): string => `${node}/${index}`;

export interface Focus {
  /** `null` = every node. */
  readonly nodes: ReadonlySet<string> | null;
  /** `null` = every card of those nodes. */
  readonly cards: CardsMeant | null;
}

export const isNodeInFocus = (focus: Focus, node: string): boolean => focus.nodes === null || focus.nodes.has(node);

export const isCardInFocus = (focus: Focus, node: string, index: number): boolean => isNodeInFocus(focus, node) && (focus.cards === null || focus.cards.indexes.has(index) || focus.cards.named.has(cardKey(node, index)));
