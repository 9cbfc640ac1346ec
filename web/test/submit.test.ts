import { describe, expect, it } from "vitest";
import type { JobFlag, JobForm } from "../src/api/types";
import { type Draft, draftOf, flagsOf, submissionOf, valueOf } from "../src/boards/submit/draft";

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
const empty: Draft = { type: "rayjob", namespace: "team-a", name: "bert", command: "train", flags: {} };
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
    expect(submissionOf(draftOf(body), form)).toEqual(body);
  });
  it("shows the standard until something is typed", () => {
    expect(form.flags.map((each) => valueOf(empty, each))).toEqual(["", "", false, true, "0", "1", "sh", "", false]);
  });
});

it("a schedule has a part of the form of its own", () => {
  expect(flagsOf("schedule", form).map(({ name }) => name)).toEqual(["schedule"]);
});

it("every flag has one place in the form", () => {
  const placed = (["main", "schedule", "size", "data", "place", "more"] as const).flatMap((section) => flagsOf(section, form).map(({ name }) => name));
  expect(placed.toSorted()).toEqual(form.flags.map(({ name }) => name).toSorted());
});
