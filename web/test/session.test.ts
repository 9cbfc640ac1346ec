import { afterEach, describe, expect, it, vi } from "vitest";
import { leaveIfSignedOut, nextOf, signInFrom } from "../src/api/session";

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

/** Where the page goes; `status`: of the answer to `/me`. */
async function place(status: number, why: string): Promise<string | null> {
  const to: string[] = [];
  vi.stubGlobal("location", { replace: (href: string) => to.push(href) });
  vi.stubGlobal("fetch", () => Promise.resolve(new Response("{}", { status, headers: { "Content-Type": "application/json" } })));
  await leaveIfSignedOut(why);
  return to[0] ?? null;
}

describe("an answer that this browser is signed out", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("leads to signing in", async () => {
    expect(await place(401, "signed-out")).toMatch(/\/signin$/);
  });
  it("leads nowhere if it was to an older sign-in", async () => {
    expect(await place(200, "signed-out")).toBeNull();
  });
  it("leads to signing in if the identity is no user", async () => {
    expect(await place(200, "no-user")).toContain("why=no-user");
  });
});
