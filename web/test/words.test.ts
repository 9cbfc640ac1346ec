import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { en } from "../src/i18n/en";
import { catalogues, chooseLocale, fill, type MessageKey, translateCode } from "../src/i18n/translate";
import { zhCN } from "../src/i18n/zh-CN";

const keys = Object.keys(en).sort();
const placeholders = (text: string) => [...new Set([...text.matchAll(/\{(\w+)[}:]/g)].map((m) => m[1]))].sort();

const none = (key: MessageKey) => fill(en[key], { borrowing: 0, leaves: 1, reporting: 0, total: 1, running: 0, pods: 1, offering: 0, nodes: 1 });

describe("catalogues", () => {
  it("have equal keys", () => {
    expect(Object.keys(zhCN).sort()).toEqual(keys);
  });
  it("leave nothing empty", () => {
    for (const catalogue of Object.values(catalogues)) for (const [key, text] of Object.entries(catalogue)) expect(text.trim(), key).not.toBe("");
  });
  it("a translation uses no value that the English text does not have", () => {
    for (const key of Object.keys(en) as (keyof typeof en)[]) {
      const known = [...placeholders(en[key]), "n", "g"];
      for (const name of placeholders(zhCN[key])) expect(known, key).toContain(name);
    }
  });
  it("Chinese texts are Chinese", () => {
    const latin = Object.entries(zhCN).filter(([key, text]) => !/[\u4e00-\u9fff]/.test(text) && !/^(frame.language|col\.(ip|cpu|max|min|used)|mode\.mig|node\.pod|map\.grantedUnits|table\.page|clause\.between)$/.test(key));
    expect(latin).toEqual([]);
  });
  it("what cancels an operation is not called like what closes its dialog", () => {
    for (const words of Object.values(catalogues)) expect(words["operations.cancel"]).not.toBe(words["form.cancel"]);
  });
  it("every message key in the sources exists", () => {
    const used = sources().flatMap((text) => [...text.matchAll(/\bt\("([a-zA-Z]+\.[\w.-]+)"/g)].map((m) => m[1] as string));
    expect(used.length).toBeGreaterThan(150);
    for (const key of used) expect(keys).toContain(key);
  });
  it("one of a kind is shown in the singular, with a verb to match", () => {
    // What is never shown of one: charts of over 500 nodes, lists of many, each of several.
    const many = /^(nodes\.chartsWhole|mine\.onNodes|why\.onCards|chart\.(ofPage|top|heat.*)|sentence\.(clause-.*|health-answers))$/;
    const wrong = Object.entries(en).flatMap(([key, text]) => {
      const said = fill(text, Object.fromEntries(placeholders(text).map((name) => [name as string, 1])), String);
      const faults = said.match(/\b1 (?:(?:more|older|working|secret|GPU) )?(?!(?:is|has|needs|series|holds|borrows|waits|bears|changes|does|uses|answers|fails)\b)[A-Za-z]+s\b|\b1 (?:GPU |more )?(?:pod|owner|leaf|node|unit|instance|job|quota|GPU|dependency)s? (?:are|have|hold|borrow|wait|exist|need|fail|that share)\b/g);
      return faults && !many.test(key) ? [`${key}: ${said}`] : [];
    });
    expect(wrong).toEqual([]);
    expect(none("sentence.quota")).toMatch(/^0 of 1 leaf borrowing;/);
    expect(none("sentence.wait-starting")).toBe("0 of 1 pod running.");
  });
  it("one thing has one word in Chinese", () => {
    const other = Object.entries(zhCN).filter(([, text]) => /许诺|持有|下限|最小值|最大值/.test(text));
    expect(other).toEqual([]);
    expect([zhCN["col.nodeUtilization"], zhCN["col.utilization"]]).toEqual(["GPU平均使用率", "GPU平均利用率"]);
  });
  it("document 000's titles and heads stand in English as they are written there", () => {
    const literals = ["GPU Summary Of Cluster", "Total GPU Nodes", "Unhealthy GPU Nodes", "GPU Memory(Used/Total)", "GPU Memory(Allocated/Total)", "GPU Utilization", "GPUs(Allocated/Total)", "Training Job Summary Of Cluster", "GPU Node Details", "GPU Duty Cycle", "GPU Memory Usage", "GPU Memory Usage Percentage", "Allocated GPUs Per Node", "GPU Number Per Node", "Total GPU Memory Per Node", "Training Jobs", "Job Instance Used GPU Memory", "Job Instance Used GPU Memory Percentage", "Job Instance GPU Duty Cycle", "Name", "IP", "Role", "Status", "GPU Mode", "Total GPUs", "Total GPU Memory", "Allocated GPUs", "Allocated GPU Memory", "Used GPU Memory", "Namespace", "Job Name", "Job Type", "Job Status", "Duration", "Request GPUs", "Elastic Quota Name", "Resource Name", "Max Quota", "Min Quota", "Used Quota"];
    const texts: readonly string[] = Object.values(en);
    for (const literal of literals) expect(texts).toContain(literal);
  });
});

function sources(folder = "src"): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? sources(path) : /\.tsx?$/.test(path) ? [readFileSync(path, "utf8")] : [];
  });
}

describe("messages", () => {
  it("choose by number", () => {
    expect(fill("{n} {n:GPU|GPUs}", { n: 1 })).toBe("1 GPU");
    expect(fill("{n} {n:GPU|GPUs}", { n: "1,234" })).toBe("1,234 GPUs");
  });
  it("an unknown value is a dash", () => {
    expect(fill("{used} of {total}", { used: null, total: 8 })).toBe("— of 8");
  });
  it("a code of the server is translated, an unknown one keeps the server's words", () => {
    expect(translateCode("zh-CN", "sentence", "cluster", { allocated: 3, total: 8 }, "x")).toBe("8 张 GPU 卡已分配 3 张。");
    expect(translateCode("en", "sentence", "brand-new", {}, "server's words")).toBe("server's words");
  });
  it("a code whose values are missing keeps the server's words", () => {
    expect(translateCode("en", "sentence", "cluster", { allocated: 3 }, "server's words")).toBe("server's words");
  });
  it("the browser's languages decide, in their order, unless a person has", () => {
    expect(chooseLocale(null, ["fr", "zh-TW", "en"])).toBe("zh-CN");
    expect(chooseLocale(null, ["en-GB", "zh"])).toBe("en");
    expect(chooseLocale("zh-CN", ["en"])).toBe("zh-CN");
    expect(chooseLocale("klingon", ["fr"])).toBe("en");
  });
});

describe("the look", () => {
  it("knows two weights, 400 and 600", () => {
    const folder = join(import.meta.dirname, "../src");
    const styles = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".css"));
    const weights = styles.flatMap((file) => [...readFileSync(join(folder, file), "utf8").matchAll(/font-weight:\s*(\w+)|font:\s*(\d{3})\s/g)].map((m) => m[1] ?? m[2]));
    expect(styles.length).toBeGreaterThan(3);
    expect([...new Set(weights)].toSorted()).toEqual(["400", "600"]);
  });
});
