import { describe, expect, it } from "vitest";
import { ApiError } from "../src/api/fetch";
import { mayRetry } from "../src/api/queries";
import type { Answer } from "../src/api/types";
import { firstLoadFor, newerBuild, writtenBuild } from "../src/app/upgrade";
import { LogLines } from "../src/boards/jobs/logs/lines";
import { ownStep, seriesNames, valueAt } from "../src/charts/series";
import { isolated, shown } from "../src/format/shown";
import { fill } from "../src/i18n/translate";
import { isGone } from "../src/parts/Gone";

const answer: Answer = { generatedAt: "2026-01-01T00:00:00Z", stale: false, version: "1", warnings: [] };
const failure = (status: number, code: string) => new ApiError(status, code, "", null, null);

describe("a thing that is gone", () => {
  it("was there, and our server says that it is there no more", () => {
    expect(isGone({ data: answer, error: failure(404, "not-found") })).toBe(true);
    expect(isGone({ data: undefined, error: failure(404, "not-found") })).toBe(false);
    expect(isGone({ data: answer, error: null })).toBe(false);
  });
  it("is not gone because a proxy or a starting server does not know it", () => {
    expect(isGone({ data: answer, error: failure(404, "http") })).toBe(false);
    expect(isGone({ data: answer, error: failure(503, "not-ready") })).toBe(false);
  });
});

const kept = () => {
  const texts = new Map<string, string>();
  return { getItem: (key: string) => texts.get(key) ?? null, setItem: (key: string, text: string) => void texts.set(key, text) };
};

const storageOff = () => {
  throw new Error("off");
};

describe("a page older than its server", () => {
  it("bears another build than the server tells", () => {
    expect(newerBuild("1+a", "1+b")).toBe("1+b");
    expect(newerBuild("1+a", "1+a")).toBeNull();
  });
  it("is never told of where nobody wrote a build, or an old server tells none", () => {
    expect(newerBuild(writtenBuild("__BUILD__"), "1+b")).toBeNull();
    expect(newerBuild(writtenBuild(undefined), "1+b")).toBeNull();
    expect(newerBuild("1+a", undefined)).toBeNull();
  });
  it("loads again once for each build: two servers of two builds make no loop", () => {
    const storage = kept();
    expect(["b", "b", "a", "b", "a"].map((build) => firstLoadFor(build, () => storage))).toEqual([true, false, true, false, false]);
  });
  it("does not load again by itself where nothing keeps that it did", () => {
    expect(firstLoadFor("b", storageOff)).toBe(false);
    expect(firstLoadFor("b", () => ({ getItem: () => null, setItem: () => {} }))).toBe(false);
  });
});

const at = (...seconds: number[]) => ({ labels: {}, points: seconds.map((s): [number, number | null] => [s * 1000, 1]) });

describe("a Prometheus with its own mind", () => {
  it("is drawn with the step it answered with", () => {
    expect(ownStep([at(0, 60, 120)], 15)).toBe(60);
    expect(ownStep([at(0, 60), at(0, 15, 75)], 15)).toBe(15);
    expect([ownStep([], 15), ownStep([at(0)], 15), ownStep([at(0, 1, 16)], 15)]).toEqual([15, 15, 15]);
    expect(valueAt(at(0, 60).points, 25_000, ownStep([at(0, 60)], 15) * 1000)).toBe(1);
  });
  it("is not asked three times more when it did not answer in time", () => {
    expect([0, 502, 503, 504, 400, 404, 500].filter((status) => mayRetry(0, failure(status, "")))).toEqual([0, 502, 503]);
    expect(mayRetry(3, failure(503, ""))).toBe(false);
  });
});

describe("names that strangers wrote", () => {
  it("show what reorders text and what is not seen", () => {
    expect(shown("a\u202eb\u2066c\u2069\u200f")).toBe("a⟨U+202E⟩b⟨U+2066⟩c⟨U+2069⟩⟨U+200F⟩");
    expect(shown("pay\u200bpal\ufeff\u00ad")).toBe("pay⟨U+200B⟩pal⟨U+FEFF⟩⟨U+00AD⟩");
    for (const letter of "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u200b\u200c\u200d\u2060\u{e0041}\u0000\u0085") expect(shown(`x${letter}y`)).toMatch(/^x⟨U\+[0-9A-F]{4,5}⟩y$/);
  });
  it("stay as they are otherwise: emoji, Chinese, Hebrew, line feeds, tabs", () => {
    for (const text of ["gpu-1", "研究 🚀", "שלום", "a\n\tb", ""]) expect(shown(text)).toBe(text);
  });
  it("reorder nothing in a sentence around them", () => {
    expect(isolated("gpu-1")).toBe("gpu-1");
    expect(isolated("שלום")).toBe("\u2068שלום\u2069");
    expect(fill("{name} holds {n} GPUs", { name: "שלום", n: 5 })).toBe("\u2068שלום\u2069 holds 5 GPUs");
    expect(fill("{name} waits", { name: "a\u202eb" })).toBe("a⟨U+202E⟩b waits");
  });
  it("are exact in what is copied", () => {
    expect(fill("{command}", { command: "kubectl -l 'a=\u202eb'" }, String)).toBe("kubectl -l 'a=\u202eb'");
  });
  it("are shown in log lines and in the names of lines of a chart", () => {
    const log = new LogLines();
    log.feed(new TextEncoder().encode("rm \u202efdp.exe\n"));
    expect(log.kept[0]?.text).toBe("rm ⟨U+202E⟩fdp.exe");
    expect(seriesNames([{ labels: { node: "n\u202e" }, points: [] }])).toEqual(["n⟨U+202E⟩"]);
  });
});
