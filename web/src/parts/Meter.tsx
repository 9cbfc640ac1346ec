// One thin bar: used within allocated within total, as nested marks. The numbers stand beside it, never only in it.

interface Props {
  total: number | null;
  allocated?: number | null;
  used?: number | null;
  /** Marked from the right end: what is broken. */
  broken?: number;
  label: string;
}

const width = (part: number, total: number): string => `${Math.min(100, Math.max(0, (100 * part) / total)).toFixed(2)}%`;

export function Meter({ total, allocated, used, broken, label }: Props) {
  // Broken cards may be held, too: what is drawn adds up to the total.
  const sound = Math.max(0, (total ?? 0) - (broken ?? 0));
  const main = used === undefined ? allocated : used;
  if (!total || main === null) return <div className="meter unknown" role="img" aria-label={label} />;
  return (
    <div className="meter" role="img" aria-label={label}>
      {typeof allocated === "number" && <i className={used === undefined ? "alloc" : "alloc under"} style={{ width: width(used === undefined ? Math.min(allocated, sound) : allocated, total) }} />}
      {typeof used === "number" && <i className="used" style={{ width: width(used, total) }} />}
      {broken ? <i className="bad" style={{ width: width(broken, total) }} /> : null}
    </div>
  );
}
