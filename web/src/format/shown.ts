// Names, labels, messages and log lines are written by strangers. What reorders text or is not seen is shown as its code point; copies keep the bytes.

/** Marks of direction, letters without width, soft hyphens, tags, and controls; line feeds and tabs are layout. */
// oxlint-disable-next-line no-control-regex -- these are invisible characters
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Hebrew, Arabic and all other letters that run from right to left. */
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** `a\u202eb` → `a⟨U+202E⟩b`. The same text where there is nothing to show. */
export function shown(text: string): string {
  return text.replace(UNSEEN, (letter) => `⟨U+${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** For a name within a sentence, a title, an aria name: as `shown`, and its letters reorder nothing beside it. */
export function isolated(text: string): string {
  const seen = shown(text);
  return RIGHT_TO_LEFT.test(seen) ? `\u2068${seen}\u2069` : seen;
}
