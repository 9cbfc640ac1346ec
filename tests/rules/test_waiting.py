"""Why a pod or a whole job waits. The reasons are those of a real kubelet's containers
(`tests/kubelet` compares them with a real one).
"""

from __future__ import annotations

import pytest
from tests.rules.builders import job, pod

from fairlead.model.jobs.job import Role
from fairlead.model.node import Condition
from fairlead.model.pod import ContainerStatus
from fairlead.rules.jobs.waiting import Wait, why_job_waits, why_pod_waits

BACK_OFF = ContainerStatus(
    "main",
    restarts=2,
    state="waiting",
    reason="CrashLoopBackOff",
    message="back-off 10s restarting failed container",
)
DEAD = ContainerStatus(
    "main",
    state="terminated",
    reason="StartError",
    message=('exec: "/nothing": no such file'),
    exit_code=128,
)
KILLED = ContainerStatus("main", state="terminated", reason="OOMKilled", exit_code=137)


def test_a_running_pod_whose_container_crashes_again_and_again_waits_for_its_next_try() -> None:
    crashing = pod("p", "n1", statuses=(BACK_OFF,))
    printed = {"container": "main", "pod": "p", "said": "back-off 10s restarting failed container"}
    reported = Wait(
        "CrashLoopBackOff",
        "container main of pod p: back-off 10s restarting failed container",
        "container-said",
        printed,
    )
    assert why_pod_waits(crashing) == reported
    assert why_job_waits(job(), [pod("q", "n1"), crashing]) == reported


def test_a_pod_that_runs_starts_or_has_ended_waits_for_nothing() -> None:
    starts = ContainerStatus("main", state="waiting", reason="ContainerCreating")
    assert (
        why_pod_waits(pod("p", "n1", statuses=(ContainerStatus("main", state="running"),))) is None
    )
    assert why_pod_waits(pod("p", "n1", phase="Pending", statuses=(starts,))) is None
    assert why_pod_waits(pod("p", "n1", phase="Failed", statuses=(BACK_OFF,))) is None


def test_the_schedulers_reason_goes_before_the_containers() -> None:
    unplaced = Condition("PodScheduled", "False", "Unschedulable", "0/4 nodes are available")
    assert why_pod_waits(pod("p", phase="Pending", conditions=(unplaced,))) == Wait(
        "Unschedulable", "0/4 nodes are available"
    )


def test_a_job_that_waits_beside_a_failed_pod_shows_how_that_ended() -> None:
    runs = pod("launcher", "n1", statuses=(ContainerStatus("main", state="running"),))
    waiting = job(roles=(Role("worker", 2),))
    assert why_job_waits(waiting, [runs, pod("w", phase="Failed", statuses=(DEAD,))]).message == (
        'container main of pod w: exec: "/nothing": no such file'
    )
    assert why_job_waits(waiting, [runs, pod("w", phase="Failed", statuses=(KILLED,))]) == Wait(
        "OOMKilled",
        "container main of pod w: it ended with exit code 137",
        "container-exit",
        {"container": "main", "pod": "w", "exit": 137},
    )
    assert why_job_waits(waiting, [runs, pod("w", phase="Failed", reason="Evicted")]) == Wait(
        "Evicted", "pod w has failed", "pod-failed", {"pod": "w"}
    )
    assert why_job_waits(waiting, [runs]).reason == "PodsMissing"


def test_a_pod_with_fairleads_gate_waits_for_what_its_quota_condition_contains() -> None:
    reported = Condition(
        "fairlead.io/QuotaAdmitted", "False", "OverMax", "cpu asks 5; root.a.1 uses 20 of max 20"
    )
    gated = pod("p", phase="Pending", gates=("fairlead.io/quota",), conditions=(reported,))
    assert why_pod_waits(gated) == Wait("OverMax", "cpu asks 5; root.a.1 uses 20 of max 20")
    assert why_job_waits(job(), [gated]) == why_pod_waits(gated)

    untold = why_pod_waits(pod("p", phase="Pending", gates=("fairlead.io/quota",)))
    assert untold is not None and "`fairlead quota why" in untold.message


@pytest.mark.parametrize(
    ("word", "reason", "sentence"),
    [
        (
            "first-admission",
            "QuotaSuspended",
            "the job is suspended until its quota has room for it, because it has a deadline",
        ),
        (
            "no-node",
            "QuotaReturned",
            "the job is suspended because no node took its pods; it resumes when one has room",
        ),
        (
            "over-max",
            "QuotaSuspended",
            "the job is suspended because its part of the quota tree used more than its max; it "
            "resumes when there is room again",
        ),
    ],
)
def test_a_job_that_quota_suspended_for_no_claimant_names_none(
    word: str, reason: str, sentence: str
) -> None:
    found = why_job_waits(job(suspended=True, annotations={"fairlead.io/suspended-for": word}), [])
    assert (found.reason, found.message) == (reason, sentence)


def test_a_job_that_quota_suspended_names_the_claimant() -> None:
    suspended = job(suspended=True, annotations={"fairlead.io/suspended-for": "team-b/train-0"})
    assert why_job_waits(suspended, []).message == (
        "the job is suspended to give quota back to team-b/train-0; it resumes when there is "
        "room again"
    )
    assert why_job_waits(job(suspended=True), []) == Wait(
        "Suspended", "the job is suspended", "suspended"
    )
