import { describe, expect, it } from "vitest";
import { placeOf } from "../src/app/boards";
import { listQuery, nextSort, parsePaging, parseSort, pick, renderSort, withQuery } from "../src/router/query";
import { baseOf, stepTo } from "../src/router/router";

const asked = (query: string) => listQuery(new URLSearchParams(query), ["q", "sort"]).toString();

describe("whence one came", () => {
  it("a step to another page keeps the page before; steps on the page count on", () => {
    const arrived = stepTo("/nodes/gpu-1", "/overview", null);
    expect(arrived).toEqual({ from: "/overview", entries: 1 });
    expect(stepTo("/nodes/gpu-1", "/nodes/gpu-1", arrived)).toEqual({ from: "/overview", entries: 2 });
    expect(stepTo("/jobs/a/b/c", "/nodes/gpu-1", { from: "/overview", entries: 2 })).toEqual({ from: "/nodes/gpu-1", entries: 1 });
  });
  it("who came from nowhere has nowhere to go back to", () => {
    expect(stepTo("/nodes", "/nodes", null)).toBeNull();
  });
});

describe("the address as state", () => {
  it("a change replaces its keys and keeps the others", () => {
    expect(withQuery("?q=a&page=3", { page: null, job_type: ["mpijob", "tfjob"] })).toBe("?q=a&job_type=mpijob&job_type=tfjob");
  });
  it("empty values leave no trace", () => {
    expect(withQuery("?q=a", { q: "", sort: null, gpu_node: [] })).toBe("");
  });
  it("names with slashes, colons and markup survive the way there and back", () => {
    const query = withQuery("", { open: "ns/mpijob/<img onerror=x>", q: "zone:a&b" });
    const params = new URLSearchParams(query);
    expect([params.get("open"), params.get("q")]).toEqual(["ns/mpijob/<img onerror=x>", "zone:a&b"]);
    expect(query).not.toContain("<");
  });
  it("nonsense in page and size falls back", () => {
    expect(parsePaging(new URLSearchParams("page=-1&size=501"))).toEqual({ page: 1, size: 50 });
    expect(parsePaging(new URLSearchParams("page=2&size=7"))).toEqual({ page: 2, size: 7 });
    expect(parsePaging(new URLSearchParams("page=1e300&size=0"))).toEqual({ page: 1, size: 50 });
    expect(parsePaging(new URLSearchParams("page=x&size=500"))).toEqual({ page: 1, size: 500 });
    expect(parsePaging(new URLSearchParams("page=1.5"))).toEqual({ page: 1, size: 50 });
  });
  it("a list is asked for the page that its foot tells", () => {
    expect(asked("q=a&sort=-name&page=2&size=7&open=x")).toBe("q=a&sort=-name&page=2&size=7");
    expect(["page=abc", "page=0&size=501", "page=&size=1e999", "page=1&size=50", "size=x&size=7"].map(asked)).toEqual(["", "", "", "", ""]);
    expect(asked("page=2&page=3&size=1e2")).toBe("page=2&size=100");
  });
  it("a head cycles through its two directions and back to none", () => {
    const first = nextSort(null, "gpusTotal", true);
    const second = nextSort(first, "gpusTotal", true);
    expect([renderSort(first), renderSort(second), nextSort(second, "gpusTotal", true)]).toEqual(["-gpusTotal", "gpusTotal", null]);
    expect(nextSort(first, "name", false)).toEqual({ key: "name", descending: false });
    expect(parseSort("-gpuUtilPercent,name")).toEqual({ key: "gpuUtilPercent", descending: true });
  });
  it("only the named keys reach the server", () => {
    expect(pick(new URLSearchParams("gpu_node=a&gpu_node=b&open=x&color=team"), ["gpu_node", "sort"]).toString()).toBe("gpu_node=a&gpu_node=b");
  });
});

describe("places", () => {
  it("finds the board of a path", () => {
    expect(placeOf("/")).toEqual({ board: "overview" });
    expect(placeOf("/nodes/gpu-1")).toEqual({ board: "node", name: "gpu-1" });
    expect(placeOf("/jobs/team-a/mpijob/x%20y")).toEqual({ board: "job", id: ["team-a", "mpijob", "x y"] });
    expect(placeOf("/jobs/team-a")).toEqual({ board: "none" });
    expect(placeOf("/nodes/%E0%A4%A")).toEqual({ board: "node", name: "%E0%A4%A" });
  });
  it("reads the base path from the script's address", () => {
    expect(baseOf("https://host/sub/path/assets/index-1.js")).toBe("/sub/path/");
    expect(baseOf("http://127.0.0.1:8080/assets/index-1.js")).toBe("/");
    expect(baseOf("http://127.0.0.1:5173/src/router/router.ts")).toBe("/");
  });
});
