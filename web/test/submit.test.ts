import { describe, expect, it } from "vitest";
import type { JobFlag, JobForm } from "../src/api/types";
import { type Draft, draftOf, flagsOf, submissionOf, valueOf, versionOf } from "../src/boards/submit/draft";

const flag = (name: string, kind: JobFlag["kind"], standard = ""): JobFlag => ({ name, kind, standard, placeholder: "", help: "" });
const form: JobForm = {
  type: "rayjob",
  family: "train",
  kind: "RayJob",
  isServed: true,
  needsCommand: true,
  command: "",
  flags: [flag("image", "text"), flag("env", "many"), flag("gang", "truth", "false"), flag("shutdown-after-finished", "truth", "true"), flag("retry", "text", "0"), flag("workers", "text", "1"), flag("shell", "text", "sh"), flag("schedule", "text"), flag("suspend", "truth", "false")],
};
const empty: Draft = { type: "rayjob", namespace: "team-a", name: "bert", command: "train", flags: {}, version: "202601051030" };
const flagsWith = (flags: Draft["flags"]) => submissionOf({ ...empty, flags }, form).flags;

describe("the body of a new job", () => {
  it("has what differs from the standard, and nothing of another kind", () => {
    expect(flagsWith({})).toEqual({});
    expect(flagsWith({ image: "i", retry: "0", workers: "2", gang: true, "shutdown-after-finished": true, "task-name": "x" })).toEqual({ image: "i", workers: "2", gang: true });
    expect(flagsWith({ "shutdown-after-finished": false, workers: "" })).toEqual({ "shutdown-after-finished": false, workers: "" });
  });
  it("has one value of each line", () => {
    expect(flagsWith({ env: "A=b\n\n  C=d e \n" })).toEqual({ env: ["A=b", "C=d e"] });
    expect(flagsWith({ env: " \n" })).toEqual({});
  });
  it("comes back from a clone as it was", () => {
    const body = { type: "rayjob", namespace: "team-a", name: "bert-2", command: "train", flags: { env: ["A=b", "C=d"], gang: true, image: "i" } };
    expect(submissionOf(draftOf(body, new Date(0)), form)).toEqual(body);
  });
  it("shows the standard until something is typed", () => {
    expect(form.flags.map((each) => valueOf(empty, each))).toEqual(["", "", false, true, "0", "1", "sh", "", false]);
  });
});

describe("the version of a serving job", () => {
  const serving: JobForm = { ...form, type: "custom-serving", family: "serve", flags: [flag("version", "text"), flag("port", "text", "0")] };
  const sent = (flags: Draft["flags"]) => submissionOf({ ...empty, flags }, serving).flags;
  it("is sent, so that it stays the same until the job is created", () => {
    expect(sent({})).toEqual({ version: "202601051030" });
    expect(sent({ version: "v2" })).toEqual({ version: "v2" });
    expect(sent({ version: "" })).toEqual({});
  });
  it("is the time here", () => {
    expect(versionOf(new Date(2026, 0, 5, 10, 30))).toBe("202601051030");
  });
});

it("a schedule has a part of the form of its own", () => {
  expect(flagsOf("schedule", form).map(({ name }) => name)).toEqual(["schedule"]);
});

it("the name of a model is rare, but not in a serving job", () => {
  const named: JobForm = { ...form, flags: [flag("model-name", "text")] };
  expect(flagsOf("more", named)).toHaveLength(1);
  expect(flagsOf("main", { ...named, family: "serve" })).toHaveLength(1);
  expect([...flagsOf("main", named), ...flagsOf("more", { ...named, family: "serve" })]).toEqual([]);
});

it("every flag has one place in the form", () => {
  const placed = (["main", "schedule", "ports", "size", "data", "place", "more"] as const).flatMap((section) => flagsOf(section, form).map(({ name }) => name));
  expect(placed.toSorted()).toEqual(form.flags.map(({ name }) => name).toSorted());
});
