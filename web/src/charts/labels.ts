// The label at the end of a line, and its width. Measured by the browser; without one, guessed by letter.

const LATIN_PX = 6.2;
const WIDE_PX = 11;
export const LABEL_MAX_PX = 100;

/** Chinese, Japanese, Korean and full-width forms: as wide as they are high. */
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]/;

const letterPx = (letter: string): number => (WIDE.test(letter) || letter.length > 1 ? WIDE_PX : LATIN_PX);

export type Measure = (text: string) => number;

/** At the 11 px of the charts, a little generously: a Chinese letter takes the room of two Latin ones. */
export function labelPx(text: string): number {
  return [...text].reduce((sum, letter) => sum + letterPx(letter), 0);
}

/** Long names keep their end: pods and nodes differ there. */
export function shortLabel(name: string, measure: Measure = labelPx): string {
  if (measure(name) <= LABEL_MAX_PX) return name;
  const letters = [...name];
  while (letters.length > 1 && measure(`…${letters.join("")}`) > LABEL_MAX_PX) letters.shift();
  return `…${letters.join("")}`;
}

type Values = readonly (readonly [number, number | null])[];

/** What stands at the ends of lines: lines of the same values lie upon each other, so the first speaks for all (`gpu-1 +4`); `null` for those behind it. */
export function endLabels(names: readonly string[], points: readonly Values[], measure: Measure = labelPx): (string | null)[] {
  const values = points.map((one) => JSON.stringify(one));
  return names.map((name, i) => {
    if (values.indexOf(values[i] as string) !== i) return null;
    const behind = values.filter((each) => each === values[i]).length - 1;
    return behind > 0 ? `${shortLabel(name, measure)} +${behind}` : shortLabel(name, measure);
  });
}
