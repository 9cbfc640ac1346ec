// Who "I" am on My work, and the command that takes what could start now.
import { describe, expect, it } from "vitest";
import { jobsQueryOf, personIn, queryOf } from "../src/boards/mine/me";
import { startCommand } from "../src/commands/commands";

describe("who I am", () => {
  it("is what the address says, a namespace before a user", () => {
    expect(personIn(new URLSearchParams("user=ann"))).toEqual({ user: "ann" });
    expect(personIn(new URLSearchParams("user=ann&namespace=team-a"))).toEqual({ namespace: "team-a" });
    expect(personIn(new URLSearchParams("user=&page=2"))).toBeNull();
  });
  it("is asked of the API by the same words, and of the jobs by theirs", () => {
    expect(queryOf({ user: "ann" }).toString()).toBe("user=ann");
    expect(queryOf(null).toString()).toBe("");
    expect(jobsQueryOf({ namespace: "team-a" }).toString()).toBe("job_namespace=team-a");
  });
});

describe("the command of a start", () => {
  it("asks for whole cards of that model, or for memory of a shared one", () => {
    const whole = { namespace: "team-a", resource: "nvidia.com/gpu", amount: 3, selector: "aliyun.accelerator/nvidia_name=Tesla-V100" };
    expect(startCommand(whole)).toBe("arena submit pytorchjob --name=first -n team-a --gpus=3 --workers=1 --selector=aliyun.accelerator/nvidia_name=Tesla-V100 --image=pytorch/pytorch:latest nvidia-smi");
    expect(startCommand({ ...whole, resource: "aliyun.com/gpu-mem", amount: 15, selector: "" })).toContain("-n team-a --gpumemory=15 --workers=1 --image=");
  });
  it("quotes what a shell would take apart", () => {
    expect(startCommand({ namespace: "a", resource: "nvidia.com/gpu", amount: 1, selector: "gpu=Tesla V100" })).toContain("'--selector=gpu=Tesla V100'");
  });
});
