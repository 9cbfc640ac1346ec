// The piece of line that stands before a name in a legend or a tooltip, drawn as the line is.
import type { LineStyle } from "./series";

export function Swatch({ style }: { style: LineStyle | undefined }) {
  return <i className={style?.dashed ? "swatch dashed" : "swatch"} style={{ color: style?.colour }} aria-hidden="true" />;
}
