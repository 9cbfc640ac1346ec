// Bytes of a log → lines to show. Cuts may fall anywhere, also inside a character; memory is bounded, and what is dropped is counted. What is not seen is shown as its code point.

import { shown } from "../../../format/shown";

/** A line longer than this is cut; how much is missing stands in `cut`. */
export const LINE_MAX = 16_384;
export const LINES_MAX = 50_000;
/** 20 MB: two bytes a character. */
export const CHARS_MAX = 10_000_000;

export interface LogLine {
  readonly text: string;
  /** Characters left out at its end. */
  readonly cut: number;
}

// oxlint-disable-next-line no-control-regex -- these are what a terminal obeys and a page must not
const ESCAPES = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[@-Z\\-_]?|[\u0000-\u0008\u000b-\u001f\u007f]/g;
// oxlint-disable-next-line no-control-regex -- as above
const HAS_ESCAPE = /[\u0000-\u0008\u000b-\u001f\u007f]/;

/** Text alone: colours and moves of the cursor are taken out; of a line that was written over, what came last. */
export function plain(text: string): string {
  if (!HAS_ESCAPE.test(text)) return text;
  const last = text.replace(/\r+$/, "");
  return last.slice(last.lastIndexOf("\r") + 1).replace(ESCAPES, "");
}

export class LogLines {
  private lines: LogLine[] = [];
  private readonly decoder = new TextDecoder("utf-8");
  private open = "";
  private overflow = 0;
  private chars = 0;
  bytes = 0;
  /** Oldest lines that were let go. */
  dropped = 0;

  feed(bytes: Uint8Array): void {
    this.bytes += bytes.length;
    this.take(this.decoder.decode(bytes, { stream: true }));
  }

  /** The log has ended: a last line without an end is a line too. */
  end(): void {
    this.take(this.decoder.decode());
    if (this.open || this.overflow) this.close();
    this.trim();
  }

  /** Lines that are kept; the first has the number `dropped + 1`. */
  get kept(): readonly LogLine[] {
    return this.lines;
  }

  private take(text: string): void {
    let from = 0;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", from)) {
      this.append(text, from, at);
      this.close();
      from = at + 1;
    }
    this.append(text, from, text.length);
    this.trim();
  }

  private append(text: string, from: number, to: number): void {
    const room = LINE_MAX - this.open.length;
    if (to - from > room) this.overflow += to - from - room;
    if (room > 0 && to > from) this.open += text.slice(from, Math.min(to, from + room));
  }

  private close(): void {
    const line = { text: shown(plain(this.open)), cut: this.overflow };
    this.lines.push(line);
    this.chars += line.text.length;
    this.open = "";
    this.overflow = 0;
  }

  private trim(): void {
    if (this.lines.length <= LINES_MAX && this.chars <= CHARS_MAX) return;
    let gone = Math.max(0, this.lines.length - LINES_MAX);
    let left = this.chars;
    for (let i = 0; i < gone; i += 1) left -= this.lines[i]?.text.length ?? 0;
    while (left > CHARS_MAX && gone < this.lines.length) left -= this.lines[gone++]?.text.length ?? 0;
    this.lines = this.lines.slice(gone);
    this.chars = left;
    this.dropped += gone;
  }
}

/** Rows as they are drawn: [line, from, to). Without a width a line is one row. */
export type Row = readonly [line: number, from: number, to: number];

export function rowsOf(lines: readonly LogLine[], columns: number | null): readonly Row[] {
  if (columns === null) return lines.map((l, i) => [i, 0, l.text.length] as const);
  const rows: Row[] = [];
  lines.forEach(({ text }, line) => {
    let from = 0;
    let width = 0;
    for (let at = 0; at < text.length; at += 1) {
      const wide = text.charCodeAt(at) >= 0x1100 ? 2 : 1;
      if (width + wide > columns && at > from) {
        rows.push([line, from, at]);
        from = at;
        width = 0;
      }
      width += wide;
    }
    rows.push([line, from, text.length]);
  });
  return rows;
}

/** Indexes of lines that contain the words, whatever their case. */
export function matches(lines: readonly LogLine[], words: string): readonly number[] {
  if (!words) return [];
  const wanted = words.toLowerCase();
  const found: number[] = [];
  lines.forEach((l, i) => {
    if (l.text.toLowerCase().includes(wanted)) found.push(i);
  });
  return found;
}
