import { describe, expect, it } from "vitest";
import { isShown, mayWrap, readChoice, rowHeight } from "../src/table/columns";
import { scrollTo, windowOf } from "../src/table/window";
import { isSameButOrder } from "../src/table/useKept";

describe("an order that is refused", () => {
  it("keeps rows of the same filters, of whatever page", () => {
    expect(isSameButOrder("q=a&sort=name&page=3", "q=a&sort=-since")).toBe(true);
    expect(isSameButOrder("q=a&sort=name", "q=b&sort=name")).toBe(false);
    expect(isSameButOrder("status=a&status=b", "status=a")).toBe(false);
  });
});

describe("the window of rows", () => {
  it("500 rows cost what is in sight", () => {
    const seen = windowOf(500, 32, 3200, 576);
    expect([seen.start, seen.end]).toEqual([98, 120]);
    expect(seen.above + (seen.end - seen.start) * 32 + seen.below).toBe(500 * 32);
  });
  it("ends are ends", () => {
    expect(windowOf(500, 32, 0, 576).start).toBe(0);
    expect(windowOf(500, 32, 500 * 32, 576).end).toBe(500);
    expect(windowOf(0, 32, 0, 576)).toEqual({ start: 0, end: 0, above: 0, below: 0 });
  });
  it("a list that shrank under the scroll position still shows rows", () => {
    const seen = windowOf(3, 32, 9000, 576);
    expect(seen.end).toBe(3);
    expect(seen.start).toBeLessThan(3);
  });
  it("scrolls only when the row is out of sight", () => {
    expect(scrollTo(5, 32, 0, 576)).toBe(0);
    expect(scrollTo(20, 32, 0, 576)).toBe(21 * 32 - 576);
    expect(scrollTo(2, 32, 320, 576)).toBe(64);
  });
});

describe("the choice of columns", () => {
  it("a broken memory is no choice", () => {
    expect(readChoice("{").density).toBe("normal");
    expect(readChoice('{"density":"compact"}').density).toBe("compact");
  });
  it("the name stays, optional columns wait to be asked", () => {
    const choice = { hidden: ["ip", "name"], shown: ["zone"] };
    expect([{ key: "name", fixed: true }, { key: "ip" }, { key: "zone", optional: true }, { key: "cpu", optional: true }].map((c) => isShown(c, choice))).toEqual([true, false, true, false]);
  });
});

it("a row has room for two lines, and for as many as its words take", () => {
  expect([rowHeight("normal"), rowHeight("normal", 3), rowHeight("compact"), rowHeight("compact", 4)]).toEqual([32, 46, 26, 50]);
});

const column = (more: object = {}) => ({ key: "name", head: "Name", width: 130, cell: () => "", ...more });

describe("a second line of a cell", () => {
  it("has no box where the words surely fit one", () => {
    expect(mayWrap(column(), "leaf-0000")).toBe(false);
    expect(mayWrap(column(), "")).toBe(false);
  });
  it("has one where they may not: long words, wide letters, elements", () => {
    expect(mayWrap(column(), "gpu-share-prod-01")).toBe(true);
    expect(mayWrap(column(), "等待配额等待配额")).toBe(true);
    expect(mayWrap(column(), { type: "a", props: {}, key: null } as never)).toBe(true);
  });
  it("is never of numbers and pictures", () => {
    expect(mayWrap(column({ number: true }), "1,000,000,000,000,000")).toBe(false);
    expect(mayWrap(column({ drawn: true }), { type: "div", props: {}, key: null } as never)).toBe(false);
  });
});
