import { describe, expect, it } from "vitest";
import { atOf } from "../src/past/at";
import { addressOf, gapAt, gapMarks, stepped, STEPS, timesOf, within } from "../src/past/moments";

const FIRST = Date.parse("2026-11-20T00:00:00.500Z");
const HOUR = STEPS["1h"];
const times = { first: FIRST, last: FIRST + 10 * HOUR, gaps: [{ start: FIRST + 2 * HOUR, end: FIRST + 4 * HOUR }] };

describe("moments of the past", () => {
  it("come from the server's answer, and there are none before the first record", () => {
    expect(timesOf({ first: "2026-11-20T00:00:00Z", last: "2026-11-20T02:00:00Z", gaps: [{ start: "2026-11-20T01:00:00Z", end: "2026-11-20T01:30:00Z" }] })).toEqual({
      first: Date.parse("2026-11-20T00:00:00Z"),
      last: Date.parse("2026-11-20T02:00:00Z"),
      gaps: [{ start: Date.parse("2026-11-20T01:00:00Z"), end: Date.parse("2026-11-20T01:30:00Z") }],
    });
    expect(timesOf({ first: null, last: null, gaps: [] })).toBeNull();
    expect(timesOf(undefined)).toBeNull();
  });
  it("are whole seconds within the bounds", () => {
    expect(within(times, FIRST - HOUR)).toBe(FIRST + 500);
    expect(within(times, FIRST + 20 * HOUR)).toBe(FIRST + 10 * HOUR - 500);
    expect(within(times, FIRST + HOUR + 200)).toBe(FIRST + HOUR + 500);
    expect(addressOf(within(times, FIRST))).toBe("2026-11-20T00:00:01Z");
  });
  it("go on step by step, over a gap, and end at the last", () => {
    expect(stepped(times, FIRST, HOUR)).toBe(FIRST + HOUR + 500);
    expect(stepped(times, FIRST + 1.5 * HOUR, HOUR)).toBe(FIRST + 4 * HOUR + 500);
    expect(stepped(times, FIRST + 4.5 * HOUR, -HOUR)).toBe(FIRST + 2 * HOUR - 500);
    expect(stepped(times, FIRST + 9.5 * HOUR, HOUR)).toBeNull();
  });
  it("in a gap name it, and gaps are drawn where they are", () => {
    expect(gapAt(times, FIRST + 3 * HOUR)).toEqual(times.gaps[0]);
    expect(gapAt(times, FIRST + 4 * HOUR)).toBeNull();
    expect(gapMarks(times)).toEqual([{ left: 20, width: 20 }]);
  });
  it("are of the pages that show them alone", () => {
    expect(atOf("/overview", "?at=2026-11-20T00:00:01Z")).toBe("2026-11-20T00:00:01Z");
    expect(atOf("/quota", "?at=2026-11-20T00:00:01Z")).toBeNull();
    expect(atOf("/nodes", "")).toBeNull();
  });
});
