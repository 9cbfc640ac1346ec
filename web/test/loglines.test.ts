import { describe, expect, it } from "vitest";
import { LINE_MAX, LINES_MAX, LogLines, matches, plain, rowsOf } from "../src/boards/jobs/logs/lines";

const bytes = (text: string) => new TextEncoder().encode(text);
const read = (chunks: readonly Uint8Array[]) => {
  const lines = new LogLines();
  for (const chunk of chunks) lines.feed(chunk);
  lines.end();
  return lines;
};
/** Repeatable chance. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

describe("lines of a log", () => {
  it("are the same wherever the bytes were cut, also inside a character or an escape", () => {
    const whole = bytes("训练 step 1 ✓\n\u001b[32mgreen\u001b[0m 🚀\r\nlast without end é");
    const expected = ["训练 step 1 ✓", "green 🚀", "last without end é"];
    for (let seed = 1; seed <= 200; seed += 1) {
      const next = chance(seed);
      const chunks: Uint8Array[] = [];
      for (let at = 0; at < whole.length; ) {
        const size = Math.floor(next() * 6);
        chunks.push(whole.slice(at, at + size));
        at += size;
      }
      expect(read(chunks).kept.map((l) => l.text)).toEqual(expected);
    }
  });
  it("of a megabyte are cut, and what is missing is counted", () => {
    const lines = read([bytes("x".repeat(600_000)), bytes(`${"x".repeat(400_000)}\nnext\n`)]);
    expect(lines.kept[0]?.text.length).toBe(LINE_MAX);
    expect(lines.kept[0]?.cut).toBe(1_000_000 - LINE_MAX);
    expect(lines.kept[1]).toEqual({ text: "next", cut: 0 });
  });
  it("are let go at the old end, and counted", () => {
    const lines = new LogLines();
    for (let i = 0; i < 7; i += 1) lines.feed(bytes(Array.from({ length: 10_000 }, (_, n) => `${i * 10_000 + n}\n`).join("")));
    expect(lines.kept.length).toBe(LINES_MAX);
    expect(lines.dropped).toBe(20_000);
    expect(lines.kept[0]?.text).toBe("20000");
  });
  it("of many characters are bounded by their size", () => {
    const lines = new LogLines();
    for (let i = 0; i < 30; i += 1) lines.feed(bytes(`${"y".repeat(9_999)}\n`.repeat(50)));
    expect(lines.kept.length).toBe(1_000);
    expect(lines.dropped).toBe(500);
  });
  it("are text: no colour, no title of a terminal, no bell; markup stays as it is written", () => {
    expect(plain("\u001b[1;31merror\u001b[0m \u001b]0;title\u0007<b>x</b>\u0007\u001b[2K")).toBe("error <b>x</b>");
    expect(plain(" 10%\r 50%\r100%\r")).toBe("100%");
    expect(read([new Uint8Array([0xff, 0x41, 0x0a])]).kept[0]?.text).toBe("\ufffdA");
  });
  it("wrap at a width, wide characters count twice", () => {
    expect(rowsOf([{ text: "abcdef", cut: 0 }, { text: "", cut: 0 }], 4)).toEqual([[0, 0, 4], [0, 4, 6], [1, 0, 0]]);
    expect(rowsOf([{ text: "训练ab", cut: 0 }], 4)).toEqual([[0, 0, 2], [0, 2, 4]]);
    expect(rowsOf([{ text: "abcdef", cut: 0 }], null)).toEqual([[0, 0, 6]]);
  });
  it("are found whatever their case", () => {
    expect(matches([{ text: "Error", cut: 0 }, { text: "fine", cut: 0 }], "ERR")).toEqual([0]);
    expect(matches([{ text: "x", cut: 0 }], "")).toEqual([]);
  });
});
