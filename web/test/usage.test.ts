import { describe, expect, it } from "vitest";
import { splitOf, SPLIT } from "../src/boards/idle/split";
import { heldOf, hoursOf, hoursUnit } from "../src/boards/quota/hours";
import { axisEnd, barsOf } from "../src/boards/usage/bars";
import { matcherText, parseMatcher } from "../src/boards/usage/matcher";
import { monthsKept, periodChange, periodOf, periodQuery } from "../src/boards/usage/period";
import { usageColumns, usageKey } from "../src/boards/usage/columns";
import { labelsText, partWord, usageName } from "../src/boards/usage/words";
import { tableCommands } from "../src/commands/commands";
import { heldHours, money } from "../src/format/format";
import { type MessageKey, translate, type Values } from "../src/i18n/translate";

const t = (key: MessageKey, values?: Values) => translate("en", key, values);
const query = (text: string) => new URLSearchParams(text);

describe("money and hours", () => {
  it("money has two places, and less than a cent two digits", () => {
    expect(["1234.5", "0", "0.004567", "-0.5", null, ""].map(money)).toEqual(["1,234.50", "0.00", "0.0046", "-0.50", "—", "—"]);
  });
  it("a little is not nothing, and unknown is not 0", () => {
    expect([0, 0.01, 12.34, null].map(heldHours)).toEqual(["0.0", "<0.1", "12.3", "—"]);
  });
});

describe("the period of a page", () => {
  it("is 30 days unless the address has another", () => {
    expect(["", "period=24h", "month=2026-11", "from=2026-11-01&to=2026-11-05", "period=1y", "month=2026-13"].map((text) => periodOf(query(text)))).toEqual(["30d", "24h", "month", "custom", "30d", "30d"]);
  });
  it("is asked in the words of the API", () => {
    expect(["", "period=7d", "month=2026-11&by=leaf", "from=2026-11-01T00:00:00Z"].map((text) => periodQuery(query(text)).toString())).toEqual(["period=30d", "period=7d", "month=2026-11", "from=2026-11-01T00%3A00%3A00Z"]);
  });
  it("of two days begins and ends at their midnights in the browser", () => {
    const asked = periodQuery(query("from=2026-11-01&to=2026-11-05"));
    expect([asked.get("from"), asked.get("to")]).toEqual([new Date(2026, 10, 1).toISOString(), new Date(2026, 10, 5).toISOString()]);
  });
  it("another one leaves nothing of the one before in the address", () => {
    const now = new Date(2026, 10, 29, 12).getTime();
    expect(periodChange("30d", now)).toEqual({ period: null, month: null, from: null, to: null, page: null });
    expect(periodChange("month", now)).toMatchObject({ month: "2026-11", period: null });
    expect(periodChange("custom", now)).toMatchObject({ from: "2026-11-22", to: "2026-11-29" });
  });
  it("months go back over the end of a year", () => {
    const months = monthsKept(new Date(2026, 0, 31).getTime());
    expect(months.slice(0, 3)).toEqual(["2026-01", "2025-12", "2025-11"]);
    expect(months).toHaveLength(14);
  });
});

describe("bars of days", () => {
  const days = [
    { day: "2026-11-01", start: "2026-11-01T00:00:00Z", rows: [10, 2], busy: 8, idle: 3, unknown: 1 },
    { day: "2026-11-02", start: "2026-11-02T00:00:00Z", rows: [0, 0], busy: 0, idle: 0, unknown: 0 },
  ];
  it("have the parts of the rows, or those of their use", () => {
    expect(barsOf({ days }, false)[0]).toEqual({ day: "2026-11-01", parts: [10, 2], total: 12 });
    expect(barsOf({ days }, true)[0]).toEqual({ day: "2026-11-01", parts: [8, 3, 1], total: 12 });
  });
  it("end at a round number that is not below the highest", () => {
    expect([12, 5, 99, 0.3, 0].map((total) => axisEnd([{ day: "", parts: [], total }]))).toEqual([20, 5, 100, 0.5, 0]);
  });
});

describe("labels of a price", () => {
  it("are read as they are written", () => {
    expect(parseMatcher("gpu-model=NVIDIA A100, topology.kubernetes.io/zone=a")).toEqual({ "gpu-model": "NVIDIA A100", "topology.kubernetes.io/zone": "a" });
    expect(parseMatcher(" ")).toEqual({});
    expect(parseMatcher(matcherText({ a: "b", c: "d=e" }))).toEqual({ a: "b", c: "d=e" });
  });
  it("that cannot be read are refused", () => {
    expect(["a", "=b", "a=", "a=b, a=c"].map(parseMatcher)).toEqual([null, null, null, null]);
  });
  it("none of them means every node", () => {
    expect([labelsText({}, t), labelsText({ a: "b" }, t)]).toEqual(["every node", "a=b"]);
  });
});

describe("hours on the quota board", () => {
  const row = { gpuHours: 5, gpuMemoryGibHours: 50, coreHours: 10, memoryGibHours: 20 };
  const rows = hoursOf([{ ...row, name: "root.a.1" }, { ...row, name: "root.a.2" }, { ...row, name: "root.ab" }, { ...row, name: "" }]);
  it("of a node are those of the leaves at and below it", () => {
    expect(["root", "root.a", "root.a.1", "root.b"].map((path) => heldOf(rows, path, "nvidia.com/gpu"))).toEqual([15, 10, 5, 0]);
    expect(["cpu", "memory", "aliyun.com/gpu-mem"].map((resource) => heldOf(rows, "root.a", resource))).toEqual([20, 40, 100]);
  });
  it("of what the ledger does not count are unknown", () => {
    expect([heldOf(rows, "root", "example.com/x"), hoursUnit("example.com/x")]).toEqual([null, ""]);
  });
});

describe("the money of GPUs", () => {
  it("has six parts, in the order of the bar", () => {
    const of = { gpuHours: 6, usedGpuHours: 1, idleGpuHours: 1, unknownGpuHours: 1, freeGpuHours: 1, strandedGpuHours: 1, brokenGpuHours: 1, cost: "6", usedCost: "1", idleCost: "1", unknownCost: "1", freeCost: "1", strandedCost: "1", brokenCost: "1" };
    expect(splitOf(of).map(({ part }) => part)).toEqual([...SPLIT]);
    expect(SPLIT.map((part) => partWord(part, t))).toEqual(["Used", "Idle", "Unknown", "Free", "Stranded", "Broken"]);
  });
});

const heads = (currency: string): string[] => usageColumns({ t }, "user", currency).map(({ key }) => key);

describe("rows of usage", () => {
  it("are named as what they are of", () => {
    expect([usageName({ name: "bert", namespace: "a" }, "job", t), usageName({ name: "", namespace: "a" }, "job", t)]).toEqual(["a/bert", "a · no job"]);
    expect(["user", "namespace", "leaf", "job", "model"].map((by) => usageName({ name: "", namespace: "" }, by, t))).toEqual(["no user", "no namespace", "outside the quota tree", "no job", "no GPU"]);
  });
  it("of two jobs of one name are two", () => {
    expect(usageKey({ uid: "u1", namespace: "a", type: "mpijob", name: "x" })).not.toBe(usageKey({ uid: "u2", namespace: "a", type: "mpijob", name: "x" }));
  });
  it("have columns of money only with prices", () => {
    expect(heads("").filter((key) => /cost/i.test(key))).toEqual([]);
    expect(heads("CNY")).toEqual(expect.arrayContaining(["cost", "listCost", "savedPercent"]));
  });
  it("have a command that prints the same", () => {
    expect(tableCommands("usage", query("by=leaf&month=2026-11"))).toEqual(["fairlead usage --by=leaf --month=2026-11"]);
    expect(tableCommands("usage", query("by=user&from=2026-11-01T00:00:00Z&to=2026-11-05T00:00:00Z"))).toEqual(["fairlead usage --by=user --from=2026-11-01T00:00:00Z --to=2026-11-05T00:00:00Z"]);
    expect(tableCommands("idle", query("period=7d"))).toEqual(["fairlead idle --period=7d"]);
  });
});
