// Which colour stands for a number on a sequential scale? Stops are mixed in linear light, so the middle is not muddy.

const channel = (hex: string, at: number): number => Number.parseInt(hex.slice(at, at + 2), 16) / 255;
const toLinear = (c: number): number => c ** 2.2;
const toByte = (c: number): string =>
  Math.round(255 * c ** (1 / 2.2))
    .toString(16)
    .padStart(2, "0");

function mix(a: string, b: string, t: number): string {
  const part = (at: number) => toByte(toLinear(channel(a, at)) * (1 - t) + toLinear(channel(b, at)) * t);
  return `#${part(1)}${part(3)}${part(5)}`;
}

/** A table of `steps` colours along the stops; index it with `Math.round(share * (steps - 1))`. */
export function ramp(stops: readonly string[], steps = 101): string[] {
  return Array.from({ length: steps }, (_, i) => {
    const at = (i / (steps - 1)) * (stops.length - 1);
    const left = Math.min(stops.length - 2, Math.floor(at));
    return mix(stops[left] as string, stops[left + 1] as string, at - left);
  });
}

/** WCAG contrast of two `#rrggbb` colours, 1 … 21. */
export function contrast(a: string, b: string): number {
  const [hi, lo] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (hi + 0.05) / (lo + 0.05);
}

function luminance(hex: string): number {
  const part = (at: number) => {
    const c = channel(hex, at);
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}
