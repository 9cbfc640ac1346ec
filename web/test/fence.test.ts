// What happened on one page is not told on the next.
import { describe, expect, it } from "vitest";
import { Fence } from "../src/app/Fence";

describe("a page that failed", () => {
  const failed = { error: new Error("x"), path: "/nodes" };
  it("says so as long as one is there", () => {
    expect(Fence.getDerivedStateFromProps({ path: "/nodes" }, failed)).toBeNull();
  });
  it("says nothing any more on another", () => {
    expect(Fence.getDerivedStateFromProps({ path: "/jobs" }, failed)).toEqual({ error: null, path: "" });
    expect(Fence.getDerivedStateFromProps({ path: "/jobs" }, { error: null, path: "" })).toBeNull();
  });
});
