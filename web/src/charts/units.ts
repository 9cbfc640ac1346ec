// How is a chart's unit written? The server's word → the axis title, the scale of its numbers, the format of one value.
import { count, memory, percent, UNKNOWN } from "../format/format";
import type { Words } from "../i18n/locale";
import { unitWord } from "../i18n/units";

export interface UnitStyle {
  readonly axis: string;
  readonly scale: number;
  readonly format: (value: number | null) => string;
  /** The axis must reach this: a share is read against 100. */
  readonly reach: number | null;
  /** Counts things that do not come in halves. */
  readonly whole: boolean;
}

const plain = (axis: string, whole = false): UnitStyle => ({ axis, scale: 1, reach: null, whole, format: (v) => (v === null ? UNKNOWN : `${round(v)}${axis ? ` ${axis}` : ""}`) });
const round = (v: number): string => (Number.isInteger(v) ? count(v) : v.toFixed(1));

export function unitStyle(unit: string, t: Words["t"]): UnitStyle {
  switch (unit.toLowerCase()) {
    case "percent":
      return { axis: "%", scale: 1, reach: 100, whole: false, format: percent };
    case "mib":
      return { axis: "GiB", scale: 1 / 1024, reach: null, whole: false, format: memory };
    case "bytes":
      return { axis: "GiB", scale: 1 / 1024 ** 3, reach: null, whole: false, format: (v) => memory(v === null ? null : v / 1024 ** 2) };
    case "celsius":
      return plain("°C");
    case "watts":
    case "w":
      return plain("W");
    case "gpus":
      return plain(unitWord("GPUs", t), true);
    case "count":
    case "jobs":
      return plain("", true);
    default:
      return plain(unitWord(unit, t));
  }
}
