import { describe, expect, it } from "vitest";
import { type Findable, hitsOf, marked, nearness } from "../src/app/finding";

const node = (name: string, model = ""): Findable => ({ kind: "nodes", to: `/nodes/${name}`, fields: [["", name], ["GPU Model", model]] });

describe("what a text finds", () => {
  it("the very text before its beginning, before a word in it, before anywhere", () => {
    expect(["gpu-1", "gpu-10", "a-gpu-1", "xgpu-1", "cpu"].map((text) => nearness(text, "gpu-1"))).toEqual([0, 1, 2, 3, null]);
    expect(hitsOf("GPU-1", [node("xgpu-1"), node("a-gpu-1"), node("gpu-10"), node("gpu-1"), node("cpu")]).map((hit) => hit.name)).toEqual(["gpu-1", "gpu-10", "a-gpu-1", "xgpu-1"]);
  });
  it("says in which field, unless it is the name", () => {
    expect(hitsOf("a100", [node("gpu-1", "NVIDIA A100"), node("a100-2", "NVIDIA A100")]).map((hit) => [hit.name, hit.why])).toEqual([["a100-2", ""], ["gpu-1", "GPU Model NVIDIA A100"]]);
  });
  it("nothing for nothing, and no more than six of a kind", () => {
    const many = Array.from({ length: 9 }, (_, i) => node(`gpu-${i}`));
    expect(hitsOf("  ", many)).toEqual([]);
    expect(hitsOf("gpu", [...many, { kind: "users", fields: [["", "gpu-lover"]] }]).map((hit) => hit.kind)).toEqual([...Array<string>(6).fill("nodes"), "users"]);
  });
  it("marks what was asked for, whatever signs it has", () => {
    expect(marked("gpu-A100.1", "a100.")).toEqual(["gpu-", "A100.", "1"]);
    expect(marked("x", "(")).toEqual(["x", "", ""]);
  });
});
