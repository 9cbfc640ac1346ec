// How much room do the charts of one column leave at their right, so that their plots are aligned? Each chart registers the width of its labels.

interface Need {
  readonly left: number;
  readonly room: number;
}

export class ColumnRooms {
  private readonly needs = new Map<object, Need>();
  private readonly listeners = new Set<() => void>();

  /** A chart whose left edge is at `left` px needs `room` px. */
  need(chart: object, left: number, room: number): void {
    const known = this.needs.get(chart);
    if (known?.left === left && known.room === room) return;
    this.needs.set(chart, { left, room });
    this.tell();
  }

  leave(chart: object): void {
    if (this.needs.delete(chart)) this.tell();
  }

  /** The most that any chart of the column of `chart` needs, in px; 0 without registered widths. */
  of(chart: object): number {
    const own = this.needs.get(chart);
    if (!own) return 0;
    return Math.max(...[...this.needs.values()].filter((need) => need.left === own.left).map((need) => need.room));
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}
