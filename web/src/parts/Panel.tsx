// One panel: a title, a note beside it, its tools at the right, a body. `slug` makes it findable for tests and links.
import { type ReactNode, useId } from "react";

interface Props {
  slug: string;
  title: string;
  note?: ReactNode;
  tools?: ReactNode;
  flush?: boolean;
  className?: string;
  /** Its head alone: there is nothing to show. */
  folded?: boolean;
  children?: ReactNode;
}

export function Panel({ slug, title, note, tools, flush, className, folded, children }: Props) {
  const id = useId();
  return (
    <section className={`panel ${className ?? ""}`} aria-labelledby={id} data-testid={`panel-${slug}`}>
      <div className="panel-head">
        <h2 id={id} title={title}>
          {title}
        </h2>
        {note !== undefined && <span className="note">{note}</span>}
        {tools !== undefined && <div className="end">{tools}</div>}
      </div>
      {!folded && <div className={flush ? "panel-body flush" : "panel-body"}>{children}</div>}
    </section>
  );
}
