import { describe, expect, it } from "vitest";
import { nextOf, signInFrom } from "../src/api/session";

describe("where signing in leads", () => {
  it("goes back to the page that was asked for", () => {
    const to = signInFrom("/jobs", "?job_type=mpijob&q=a b");
    expect(nextOf(to.slice(to.indexOf("?")))).toBe("/jobs?job_type=mpijob&q=a b");
    expect(signInFrom("/", "")).toBe("/signin");
  });

  it.each(["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "jobs", ""])("stays at the console for %s", (next) => {
    expect(nextOf(`?next=${encodeURIComponent(next)}`)).toBe("/");
  });
});
