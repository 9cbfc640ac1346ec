// Forms of users and groups: ids as the server makes them, faults at their fields.
import { describe, expect, it } from "vitest";
import { ApiError } from "../src/api/fetch";
import { PLAIN_ID } from "../src/boards/people/words";
import { allFaults, faultsOf } from "../src/parts/FormDialog";

const fault = (path: string) => ({ path, rule: "r", error: path, code: "" });

describe("forms that write", () => {
  it("show the id that the server will make", () => {
    expect(["Bob_Smith@example", "-Ann-", "李", ""].map(PLAIN_ID)).toEqual(["bob-smith-example", "ann", "", ""]);
  });

  it("show each fault at its field, and at no field that begins alike", () => {
    const faults = ["groups[0]", "groups", "external.uid", "groupsMore", "role"].map(fault);
    expect(faultsOf(faults, "groups").map((each) => each.path)).toEqual(["groups[0]", "groups"]);
    expect(faultsOf(faults, "external", "role").map((each) => each.path)).toEqual(["external.uid", "role"]);
  });

  it("show what a refused write returned in the place of an older preview", () => {
    const preview = { valid: false, fields: [fault("role")], effects: [] };
    expect(allFaults(null, preview)).toEqual(preview.fields);
    expect(allFaults(new ApiError(422, "invalid", "", null, null, [fault("userName")]), preview)).toEqual([fault("userName")]);
    expect(allFaults(new ApiError(503, "not-ready", "", null, null), preview)).toEqual(preview.fields);
  });
});
