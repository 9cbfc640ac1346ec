import { describe, expect, it } from "vitest";
import { rowsCsv } from "../src/format/csv";
import { amount, amountUnit, count, duration, exactMemory, exactRange, gpus, memory, memoryFraction, memoryInGib, parseTime, percent, share, span, units, UNKNOWN } from "../src/format/format";

const at = (day: number, hour: number) => new Date(2026, 0, day, hour).getTime();

it("a stretch of time tells the day of its end where that is another one", () => {
  expect(exactRange(at(5, 9), at(5, 10))).toBe("2026-01-05 09:00:00 – 10:00:00");
  expect(exactRange(at(5, 23), at(6, 1))).toBe("2026-01-05 23:00:00 – 2026-01-06 01:00:00");
  expect(exactRange(at(5, 9), new Date(2027, 0, 5, 9).getTime())).toContain("– 2027-01-05");
});

describe("rows as a file", () => {
  it("are told under the keys of all of them, in raw numbers", () => {
    expect(rowsCsv([{ name: "a", utilPercent: -1.5, at: null }, { name: "b", more: true }])).toBe("\ufeffname,utilPercent,at,more\r\na,-1.5,,\r\nb,,,true\r\n");
  });
  it("have a column for each part of a thing, and a list in one cell", () => {
    expect(rowsCsv([{ lastXid: { code: 79, at: "t" }, indexes: [0, 3], pods: [{ namespace: "x", name: "y" }, { namespace: "x", name: "z" }] }])).toBe("\ufefflastXid.code,lastXid.at,indexes,pods\r\n79,t,0; 3,x=y; x=z\r\n");
  });
  it("run nothing in a spreadsheet, and keep their commas, quotes and lines", () => {
    expect(rowsCsv([{ "=head": "=1+1", b: '-x,"y"', c: "@", d: ["+1"] }])).toBe('\ufeff\'=head,b,c,d\r\n\'=1+1,"\'-x,""y""",\'@,\'+1\r\n');
  });
});

describe("numbers", () => {
  it("unknown is a dash, never zero", () => {
    for (const format of [count, gpus, memory, percent, duration]) expect(format(null)).toBe(UNKNOWN);
    expect(percent(Number.NaN)).toBe(UNKNOWN);
  });
  it("memory is GiB with one decimal, MiB below one GiB", () => {
    expect([0, 512, 1023, 1024, 81920].map(memory)).toEqual(["0.0 GiB", "512 MiB", "1,023 MiB", "1.0 GiB", "80.0 GiB"]);
    expect([81920, 512].map(memoryInGib)).toEqual(["80.0", "512 MiB"]);
  });
  it("a sliver of a card is not nothing", () => {
    expect([0, 0.0071, 0.05, 0.857, 0.97].map(gpus)).toEqual(["0", "<0.1", "0.1", "0.9", "1"]);
  });
  it("GPUs are rounded as sentences and arena round them: halves up", () => {
    expect([24.95, 2.25, 24.05, 24.04, 8.96, 1234.5].map(gpus)).toEqual(["25", "2.3", "24.1", "24", "9", "1,234.5"]);
  });
  it("units stand with their total; a limit is exact", () => {
    expect([units(12, 14), units(0, 14), units(4, 0), units(0, 0)]).toEqual(["12 / 14", "0 / 14", "4 / 0", UNKNOWN]);
    expect([exactMemory(4308), exactMemory(null)]).toEqual(["4,308 MiB", UNKNOWN]);
  });
  it("a fraction keeps the unit of its total", () => {
    expect(memoryFraction(512, 81920)).toBe("0.5 / 80.0 GiB");
    expect(memoryFraction(null, 81920)).toBe("— / 80.0 GiB");
    expect(memoryFraction(null, null)).toBe("— / —");
    expect([10_000 * 1024 - 1024, 10_000 * 1024, 3_276_800_000].map(memory)).toEqual(["9,999.0 GiB", "9.8 TiB", "3,125.0 TiB"]);
    expect(memoryFraction(1024 * 1024, 20 * 1024 * 1024)).toBe("1.0 / 20.0 TiB");
    expect(memoryInGib(20 * 1024 * 1024)).toBe("20.0 TiB");
  });
  it("GPUs are whole, or have one decimal when shared", () => {
    expect([8, 1.5, 27.7667, 0, 2.9999].map(gpus)).toEqual(["8", "1.5", "27.8", "0", "3"]);
  });
  it("a percent of nothing is unknown", () => {
    expect(share(0, 0)).toBeNull();
    expect(share(null, 8)).toBeNull();
    expect(percent(share(3, 8))).toBe("37.5%");
  });
  it("durations have two units at most", () => {
    expect([8, 192, 7500, 273600, 3600, 60, -5].map(duration)).toEqual(["8s", "3m12s", "2h5m", "3d4h", "1h", "1m", "0s"]);
    expect([8, 192, 7500, 273600].map(span)).toEqual([{ n: 8, unit: "s" }, { n: 3, unit: "m" }, { n: 2, unit: "h" }, { n: 3, unit: "d" }]);
  });
  it("quota amounts follow the server's unit", () => {
    expect(amount("bytes", 1.5 * 1024 ** 3)).toBe("1.5");
    expect(amountUnit("bytes")).toBe("GiB");
    expect(amount("cores", 0.5)).toBe("0.5");
    expect(amount("count", null)).toBe(UNKNOWN);
  });
  it("a broken time is unknown", () => {
    expect(parseTime("2026-01-05T08:00:00Z")).toBe(1767600000000);
    expect(parseTime("soon")).toBeNull();
    expect(parseTime(null)).toBeNull();
  });
});
