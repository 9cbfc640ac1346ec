// Which cells do the filters of a board mean? The others are drawn faintly, so that the map keeps its shape.

export interface Focus {
  /** `null` = every node. */
  readonly nodes: ReadonlySet<string> | null;
  /** `null` = every card of those nodes. */
  readonly cards: ReadonlySet<number> | null;
}

export const isNodeInFocus = (focus: Focus, node: string): boolean => focus.nodes === null || focus.nodes.has(node);

export const isCardInFocus = (focus: Focus, node: string, index: number): boolean => isNodeInFocus(focus, node) && (focus.cards === null || focus.cards.has(index));
