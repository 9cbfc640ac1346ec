// What came instead of the console's answer? A proxy's own page is one error of the whole server, not one of every panel.
import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError, getJson } from "../src/api/fetch";
import { isOfServer } from "../src/parts/States";

afterEach(() => vi.unstubAllGlobals());

async function asked(status: number, body: string, statusText = ""): Promise<unknown> {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(body, { status, statusText })));
  return await getJson("/nodes").catch((error: unknown) => error);
}

describe("an answer that is not the console's", () => {
  it.each([
    [502, "<html>Bad Gateway</html>", "HTTP 502 Bad Gateway"],
    [503, "", "HTTP 503 Bad Gateway"],
    [504, "upstream request timeout", "HTTP 504 Bad Gateway"],
    [500, '{"message":"no code of ours"}', "HTTP 500 Bad Gateway"],
    [401, "<html>sign in</html>", "HTTP 401 Bad Gateway"],
    [200, "<html>sign in</html>", "HTTP 200 Bad Gateway"],
  ])("%s is told once for the page", async (status, body, said) => {
    const error = (await asked(status, body, "Bad Gateway")) as ApiError;
    expect([error.status, error.code, error.message]).toEqual([status, "proxy", said]);
    expect(isOfServer(error)).toBe(true);
  });
  it("one of ours stays where it was asked", async () => {
    const error = (await asked(502, '{"code":"outside-failed","error":"kubernetes: cut","hint":"look","requestId":"r1"}')) as ApiError;
    expect([error.code, error.message, error.hint, error.requestId, isOfServer(error)]).toEqual(["outside-failed", "kubernetes: cut", "look", "r1", false]);
    expect(await asked(200, '{"items":[]}')).toEqual({ items: [] });
  });
});
