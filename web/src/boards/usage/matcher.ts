// The labels of nodes that a price is for, as one line of text: `gpu-model=A100, topology.kubernetes.io/zone=a`.

export type Matcher = Readonly<Record<string, string>>;

export const matcherText = (matcher: Matcher): string =>
  Object.entries(matcher)
    .map(([key, value]) => `${key}=${value}`)
    .join(", ");

/** `null`: not readable as labels. Empty text means every node. */
export function parseMatcher(text: string): Matcher | null {
  const words = text
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");
  const pairs = words.map((word) => [word.slice(0, Math.max(0, word.indexOf("="))).trim(), word.slice(word.indexOf("=") + 1).trim()] as const);
  return pairs.every(([key, value]) => key !== "" && value !== "") && new Set(pairs.map(([key]) => key)).size === pairs.length ? Object.fromEntries(pairs) : null;
}
