import { describe, expect, it } from "vitest";
import { ApiError } from "../src/api/fetch";
import type { Answer } from "../src/api/types";
import { firstLoadFor, newerBuild, writtenBuild } from "../src/app/upgrade";
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
