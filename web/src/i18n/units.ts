// What is a unit called? The server's units are symbols that every language shares, but for two English words.
import type { Words } from "./locale";

export function unitWord(unit: string, t: Words["t"]): string {
  if (unit === "cores") return t("unit.cores");
  return unit === "GPUs" ? t("unit.gpus") : unit;
}
