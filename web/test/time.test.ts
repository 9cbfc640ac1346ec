import { describe, expect, it } from "vitest";
import { clusterClock, countingSpeed } from "../src/app/clock";
import { readKey } from "../src/app/keyboard";
import { isAskedAgain, parseSpan, parseSpeed, progressOf, targetOf, untilOrder } from "../src/app/timeorders";

const NOW = Date.parse("2026-01-05T08:00:00Z");
const face = (more: object = {}) => ({ now: "2026-01-05T08:00:00.000Z", speed: 60, isPaused: false, since: null, until: null, ...more });

describe("orders to a simulated clock", () => {
  it("a length of time in its usual words, and nothing else", () => {
    expect(["90s", "20m", "1h30m", "2d", " 2h 30m "].map(parseSpan)).toEqual([90, 1200, 5400, 172_800, 9000]);
    expect(["", "5", "m", "0s", "1m1h", "-5m", "1.5h"].map(parseSpan)).toEqual([null, null, null, null, null, null, null]);
  });
  it("a speed that the server takes, and nothing else", () => {
    expect(["1", "0.5", "×120", "x10", "100000"].map(parseSpeed)).toEqual([1, 0.5, 120, 10, 100_000]);
    expect(["", "0", "-1", "fast", "1e9", "NaN"].map(parseSpeed)).toEqual([null, null, null, null, null, null]);
  });
  it("a time ahead, never one behind", () => {
    expect(untilOrder("2026-01-05T09:00:00Z", NOW)).toEqual({ action: "until", until: "2026-01-05T09:00:00.000Z" });
    expect(["2026-01-05T07:59:00Z", "2026-01-05T08:00:00Z", "", "soon"].map((text) => untilOrder(text, NOW))).toEqual([null, null, null, null]);
  });
  it("only what leads a day ahead or more is asked again", () => {
    expect(isAskedAgain({ action: "advance", seconds: 86_399 }, NOW)).toBe(false);
    expect(isAskedAgain({ action: "advance", seconds: 86_400 }, NOW)).toBe(true);
    expect(isAskedAgain({ action: "until", until: "2026-01-06T08:00:00Z" }, NOW)).toBe(true);
    expect(isAskedAgain({ action: "step" }, NOW)).toBe(false);
    expect(targetOf({ action: "pause" }, NOW)).toBeNull();
  });
  it("how far a run is", () => {
    expect(progressOf(face())).toBeNull();
    expect(progressOf(face({ since: "2026-01-05T07:00:00Z", until: "2026-01-05T11:00:00Z" }))).toBe(25);
    expect(progressOf(face({ since: "2026-01-05T08:00:00Z", until: "2026-01-05T08:00:00Z" }))).toBe(0);
  });
});

describe("the cluster's clock on the page", () => {
  it("stands still while time is paused, and in a run, whose pace nobody knows", () => {
    expect([countingSpeed(face()), countingSpeed(face({ isPaused: true })), countingSpeed(face({ until: "2026-01-05T11:00:00Z" }))]).toEqual([60, 0, 0]);
    const paused = clusterClock(NOW, countingSpeed(face({ isPaused: true })), 0, () => 50_000);
    expect(paused.now()).toBe(NOW);
  });
  it("t opens it, and typing t does not", () => {
    expect(readKey({ goSince: null }, { key: "t", typing: false, modified: false }, 0)[1]).toEqual({ kind: "time" });
    expect(readKey({ goSince: null }, { key: "t", typing: true, modified: false }, 0)[1]).toBeNull();
  });
});
