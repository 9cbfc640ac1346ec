"""Contract: `fairlead operation …` over both API servers (docs/spec/operations.md#commands)."""

from __future__ import annotations

import itertools
import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.contracts.api_client import ApiClient, until
from tests.contracts.conftest import new_space
from tests.kube.servers import FAIRLEAD, environment, fairlead_answer
from tests.waiting import HANG_SECONDS

from fairlead.model.actions import ObjectRef
from fairlead.model.installation import INSTALLATION_LABEL, SYSTEM_PART
from fairlead.model.operations.operation import (
    CreateStep,
    OperationKind,
    OperationStep,
    ReadyStep,
    RemoveStep,
)
from fairlead.rules.operations.progress import begun, planned
from fairlead.wire.operations.record import lease_name, record_name, render_record

pytestmark = pytest.mark.turns(2, 1)

_ids = itertools.count(1)


class Recorded:
    """One operation: it creates the ConfigMap `made` and waits for the ConfigMap `later`."""

    def __init__(self, api: ApiClient, system: str, space: str) -> None:
        self.api, self.system, self.space = api, system, space
        self.id = f"cmd{next(_ids)}"
        self.subject = f"component/{self.id}"
        self.place = f"/api/v1/namespaces/{space}/configmaps"
        made = ObjectRef("v1", "ConfigMap", "made", space)
        steps = (
            OperationStep("Create ConfigMap made", CreateStep(self.config_map("made"))),
            OperationStep(
                "ConfigMap later exists", ReadyStep((ObjectRef("v1", "ConfigMap", "later", space),))
            ),
        )
        undo = (OperationStep("Remove ConfigMap made", RemoveStep((made,))),)
        plan = planned(
            self.id, OperationKind.DEPLOY, self.subject, steps, undo=undo, by="ann", now=1e9
        )
        record = render_record(begun(plan, "", 1e9), system)
        assert api.post(f"/api/v1/namespaces/{system}/configmaps", record).status == 201

    def config_map(self, name: str) -> dict[str, Any]:
        meta = {"name": name, "namespace": self.space}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}

    def run(self, *words: str, status: int = 0) -> str:
        answer = fairlead_answer(self.api.kubeconfig, "operation", *words)
        assert answer.returncode == status, answer.stdout + answer.stderr
        return answer.stdout + answer.stderr

    def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("show", self.id, "-o", "json"))
        return found

    def begin(self, verb: str = "resume") -> subprocess.Popen[str]:
        words = ["operation", verb, self.id, f"--kubeconfig={self.api.kubeconfig}"]
        return subprocess.Popen(
            [*FAIRLEAD, *words],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def await_wait(self) -> None:
        """Until the second step waits."""
        until("it waits", lambda: self.state["steps"][1].get("message") == "does not exist")

    @property
    def state(self) -> dict[str, Any]:
        """What the record has; a command for each look would cost a second of CPU time."""
        place = f"/api/v1/namespaces/{self.system}/configmaps/{record_name(self.id)}"
        found: dict[str, Any] = json.loads(self.api.get(place).body["data"]["state"])
        return found

    def free_lease(self) -> None:
        """What 30 seconds do after the death of its holder."""
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{self.system}/leases"
        assert self.api.delete(f"{leases}/{lease_name(self.subject)}").status == 200


@pytest.fixture
def recorded(api: ApiClient) -> Iterator[Recorded]:
    system = f"a-system-{next(_ids)}"
    labels = {INSTALLATION_LABEL: SYSTEM_PART}
    made = api.post("/api/v1/namespaces", {"metadata": {"name": system, "labels": labels}})
    assert made.status == 201
    yield Recorded(api, system, new_space(api))
    api.delete(f"/api/v1/namespaces/{system}")
    until("it is gone", lambda: api.get(f"/api/v1/namespaces/{system}").status == 404)


def test_an_operation_is_seen_and_goes_on_after_its_process_was_killed(recorded: Recorded) -> None:
    id = recorded.id
    heads, row, *_ = recorded.run("list").splitlines()
    assert heads.split() == ["ID", "KIND", "SUBJECT", "STATE", "STEP", "BY", "AGE"]
    assert row.split()[:6] == [id, "deploy", recorded.subject, "Running", "0/2", "ann"]

    with recorded.begin() as first:
        recorded.await_wait()
        shown = recorded.shown()
        assert [each["state"] for each in shown["steps"]] == ["Done", "Running"]
        assert shown["steps"][1]["object"] == f"ConfigMap {recorded.space}/later"
        assert shown["holder"]
        first.kill()
        assert first.wait() != 0
    assert recorded.shown()["state"] == "Running"
    page = recorded.run("show", id)
    assert f"ConfigMap {recorded.space}/later: does not exist" in page

    recorded.free_lease()
    with recorded.begin("follow") as follower, recorded.begin() as second:
        before = shown["holder"]
        until("another process is at work", lambda: recorded.state["holder"] not in ("", before))
        made = recorded.api.post(recorded.place, recorded.config_map("later"))
        assert made.status == 201
        printed, followed = (
            second.communicate(timeout=HANG_SECONDS)[0],
            follower.communicate(timeout=HANG_SECONDS)[0],
        )
    assert (second.returncode, follower.returncode) == (0, 0), printed + followed
    for output in (printed, followed):
        lines = output.splitlines()
        assert lines[:2] == ["[1/2] Create ConfigMap made", "[2/2] ConfigMap later exists"]
        assert lines[-1] == f"{recorded.subject}: done"
    assert recorded.shown()["state"] == "Succeeded"
    assert recorded.run("resume", id).endswith(f"{recorded.subject}: done\n")
    assert "has ended: Succeeded" in recorded.run("cancel", id, status=1)


def test_a_cancelled_operation_is_undone_by_the_process_at_work(recorded: Recorded) -> None:
    with recorded.begin() as process:
        recorded.await_wait()
        began = time.monotonic()
        assert f"operation `{recorded.id}` is at work elsewhere" in recorded.run(
            "resume", recorded.id, status=1
        )
        # a living holder is known by its renewals, every 5 s, long before its Lease would end
        assert time.monotonic() - began < 25
        assert recorded.api.get(f"{recorded.place}/made").status == 200
        assert "will end before its next step" in recorded.run("cancel", recorded.id)
        printed = process.communicate(timeout=HANG_SECONDS)[0]
    assert process.returncode == 1
    assert f"operation `{recorded.id}` was cancelled" in printed
    assert "[undo 1/1] Remove ConfigMap made" in printed
    assert recorded.api.get(f"{recorded.place}/made").status == 404
    assert recorded.shown()["state"] == "Cancelled"
    assert "was cancelled" in recorded.run("follow", recorded.id, status=1)


def test_what_does_not_exist_is_named(recorded: Recorded) -> None:
    for verb in ("show", "follow", "resume", "cancel"):
        assert "there is no operation `other`" in recorded.run(verb, "other", status=1)
