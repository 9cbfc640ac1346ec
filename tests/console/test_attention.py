"""What needs attention is listed in order, counted, named and dated; what is healthy is
not listed.
"""

from __future__ import annotations

import shlex

import msgspec
import pytest
from tests.console.clusters import EPOCH, cluster, gpu_node, training_job
from tests.console.clusters import pod as any_pod

from fairlead.console.boards.attention import attention_lines
from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.idle_cards import Idleness
from fairlead.console.pages.cluster import AttentionLine, StarvedLeaf
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.keys import QUOTA_GATE
from fairlead.model.node import Condition, Node
from fairlead.model.pod import ContainerState, ContainerStatus, Pod, PodPhase
from fairlead.model.snapshot import ClusterSnapshot

HOUR = 3600.0
replace = msgspec.structs.replace


def node(name: str, healthy: int = 8) -> Node:
    made = gpu_node(name, 8)
    return replace(made, allocatable={**made.allocatable, "nvidia.com/gpu": healthy})


def pod(name: str, on: str, gpus: int = 0) -> Pod:
    return any_pod(name, on, {"nvidia.com/gpu": gpus} if gpus else None)


def lines(snapshot: ClusterSnapshot) -> list[AttentionLine]:
    return BoardState(snapshot, EPOCH).overview.attention


def silent(of: Node, since: float) -> Node:
    return replace(of, conditions=(Condition("Ready", "Unknown", at=since),))


def waiting(of: Pod, reason: str, ended: float | None = None, restarts: int = 0) -> Pod:
    status = ContainerStatus(
        "main",
        restarts=restarts,
        state=ContainerState.WAITING,
        reason=reason,
        last_finished_at=ended,
    )
    return replace(of, statuses=(status,))


def reading(index: int, **more: object) -> GpuReading:
    return msgspec.convert(
        {"node": "gpu-1", "index": index, "uuid": f"GPU-gpu-1-{index}", "read_at": EPOCH, **more},
        GpuReading,
    )


def test_a_sound_cluster_needs_no_attention() -> None:
    assert lines(cluster([node("gpu-1")], [pod("trains", "gpu-1", gpus=2)])) == []


def test_silent_nodes_are_one_line_with_their_gpus_the_longest_first() -> None:
    seen = lines(
        cluster(
            [
                silent(node("gpu-2"), EPOCH - 60),
                silent(node("gpu-10"), EPOCH - 1860),
                node("gpu-1"),
            ],
            [],
        )
    )
    (line,) = seen
    assert (line.kind, line.level, line.count, line.sentence.values["gpus"]) == (
        "node-silent",
        "broken",
        2,
        16,
    )
    assert [each.name for each in line.objects] == ["gpu-10", "gpu-2"]
    assert line.since == "2026-01-05T07:29:00Z", "half an hour and a minute before 8 o'clock"
    assert line.command == "kubectl describe node gpu-10"


def test_what_a_pod_of_a_silent_node_reports_of_itself_is_old() -> None:
    crashed = waiting(pod("crashes", "gpu-1", gpus=1), "CrashLoopBackOff", EPOCH - 60, 4)
    assert [
        line.kind for line in lines(cluster([silent(node("gpu-1"), EPOCH - 60)], [crashed]))
    ] == ["node-silent"]


def test_an_xid_is_reported_with_what_it_means_and_when() -> None:
    broken = reading(3, healthy=False, last_xid=79, last_xid_at=EPOCH - HOUR)
    (line,) = lines(replace(cluster([node("gpu-1")], []), gpus=(broken,)))
    assert (line.kind, line.count, line.since) == ("gpu-broken", 1, "2026-01-05T07:00:00Z")
    assert line.sentence.text == "1 GPU broken: XID 79, GPU has fallen off the bus"
    assert (line.sentence.code, line.sentence.values) == (
        "attention-gpu-broken-xid",
        {"n": 1, "xid": 79, "meaning": "GPU has fallen off the bus"},
    )
    assert [(each.kind, each.name, each.index) for each in line.objects] == [("gpu", "gpu-1", 3)]


def test_broken_cards_are_distinguished_by_their_xid_and_one_without_is_reported() -> None:
    faults = ((0, 79), (1, None), (2, 48), (3, 79))
    broken = tuple(
        reading(index, healthy=False, last_xid=xid, last_xid_at=EPOCH - HOUR if xid else None)
        for index, xid in faults
    )
    found = lines(replace(cluster([node("gpu-1")], []), gpus=broken))
    assert [(line.sentence.text, line.since is not None) for line in found] == [
        ("2 GPUs broken: XID 79, GPU has fallen off the bus", True),
        ("1 GPU broken: the device reports no reason", False),
        ("1 GPU broken: XID 48, Double Bit ECC Error", True),
    ]


def test_gpus_that_a_node_no_longer_offers_are_counted_where_they_are_not_named() -> None:
    (line,) = lines(cluster([node("gpu-1", healthy=6)], []))
    assert (line.kind, line.count, line.sentence.values["gpus"], line.since) == (
        "gpu-withheld",
        1,
        2,
        None,
    )


@pytest.mark.parametrize(
    ("since_grace", "reported"), [(121.0, ["pod-stuck"]), (119.0, []), (-30.0, [])]
)
def test_a_pod_is_stuck_two_minutes_after_its_grace(
    since_grace: float, reported: list[str]
) -> None:
    going = replace(pod("goes", "gpu-1", gpus=1), deleted_at=EPOCH - since_grace)
    assert [line.kind for line in lines(cluster([node("gpu-1")], [going]))] == reported


def test_crash_loops_and_images_stand_apart() -> None:
    crashes = waiting(pod("crashes", "gpu-1", gpus=1), "CrashLoopBackOff", EPOCH - 90, 5)
    pulls = replace(
        waiting(pod("pulls", "gpu-1", gpus=1), "ImagePullBackOff"), phase=PodPhase.PENDING
    )
    seen = lines(cluster([node("gpu-1")], [crashes, pulls]))
    assert [(line.kind, line.count) for line in seen] == [("pod-crashing", 1), ("pod-image", 1)]
    assert (seen[0].sentence.values["restarts"], seen[0].since) == (5, "2026-01-05T07:58:30Z")
    assert seen[0].command == "kubectl -n team-a logs crashes --previous"


def test_a_name_is_one_word_of_its_command() -> None:
    malformed = "x; reboot $(id) 'y'"
    (line,) = lines(
        cluster(
            [node("gpu-1")],
            [waiting(pod(malformed, "gpu-1", gpus=1), "CrashLoopBackOff", EPOCH - 90, 5)],
        )
    )
    assert shlex.split(line.command) == ["kubectl", "-n", "team-a", "logs", malformed, "--previous"]


@pytest.mark.parametrize(("waited", "reported"), [(601.0, ["pod-unschedulable"]), (599.0, [])])
def test_a_pod_without_a_node_for_ten_minutes_is_reported(
    waited: float, reported: list[str]
) -> None:
    unscheduled = (Condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available"),)
    waits = replace(
        pod("waits", "", gpus=9),
        phase=PodPhase.PENDING,
        created_at=EPOCH - waited,
        conditions=unscheduled,
    )
    assert [line.kind for line in lines(cluster([node("gpu-1")], [waits]))] == reported


def test_pods_without_gpus_are_nobodys_business_here() -> None:
    assert (
        lines(
            cluster(
                [node("gpu-1")], [waiting(pod("web", "gpu-1"), "CrashLoopBackOff", EPOCH - 90, 5)]
            )
        )
        == []
    )


def test_a_gated_pod_is_not_called_unschedulable() -> None:
    gated = replace(
        pod("gated", "", gpus=1),
        phase=PodPhase.PENDING,
        gates=(QUOTA_GATE,),
        created_at=EPOCH - HOUR,
    )
    assert lines(cluster([node("gpu-1")], [gated])) == []


def test_at_most_seven_lines_the_broken_before_the_waiting() -> None:
    xids = (48, 62, 64, 74, 79, 95, 119)
    broken = tuple(
        reading(index, healthy=False, last_xid=xid, last_xid_at=EPOCH)
        for index, xid in enumerate(xids)
    )
    unscheduled = (Condition("PodScheduled", "False", "Unschedulable"),)
    waits = replace(
        pod("waits", "", gpus=9),
        phase=PodPhase.PENDING,
        created_at=EPOCH - HOUR,
        conditions=unscheduled,
    )
    seen = lines(
        replace(cluster([silent(node("gpu-2"), EPOCH - 60), node("gpu-1")], [waits]), gpus=broken)
    )
    assert len(seen) == 7 and {line.level for line in seen} == {"broken"}


def test_jobs_that_wait_are_listed_the_longest_first_with_the_reason() -> None:
    jobs = [
        training_job(name, 1, 9, state="Created", created_at=EPOCH - waited)
        for name, waited in (("new", 599), ("late", 601), ("early", 900))
    ]
    unscheduled = (Condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available"),)
    pods = [
        any_pod(f"{job.name}-worker-0", "", {"nvidia.com/gpu": 9}, job=job, conditions=unscheduled)
        for job in jobs
    ]
    (line,) = lines(cluster([node("gpu-1")], pods, jobs))
    assert (line.kind, line.level, line.count) == ("jobs-waiting", "waiting", 2)
    assert [each.name for each in line.objects] == ["early", "late"]
    assert line.why is not None and line.why.text == (
        "needs 9 GPUs on one node; the largest of 1, gpu-1, has 8"
    )
    assert line.sentence.text == "2 jobs are waiting"
    assert line.command == "arena get early --type=pytorchjob -n team-a --explain"


def test_a_starved_quota_is_shown_in_a_readable_unit() -> None:
    for leaf, reported in (
        (
            StarvedLeaf("root.a", "memory", "bytes", min=128 << 30, used=12 << 30, waiting_pods=1),
            "1 pod waits; the worst has 12 of 128 GiB (memory)",
        ),
        (
            StarvedLeaf("root.a", "cpu", "cores", min=8, used=2.5, waiting_pods=2),
            "2 pods wait; the worst has 2.5 of 8 cores (cpu)",
        ),
        (
            StarvedLeaf("root.a", "nvidia.com/gpu", "count", min=4, used=0, waiting_pods=2),
            "2 pods wait; the worst has 0 of 4 (nvidia.com/gpu)",
        ),
    ):
        (line,) = attention_lines(cluster(), (), (), [leaf], {}, {}, (), Idleness((), EPOCH), EPOCH)
        assert line.sentence.text == f"1 quota below the guaranteed minimum while {reported}"


def test_a_job_that_its_owner_suspended_needs_no_attention() -> None:
    assert (
        lines(cluster([node("gpu-1")], [], [training_job(state="Suspended", suspended=True)])) == []
    )


def test_three_are_named_and_the_others_counted() -> None:
    (line,) = lines(
        cluster([silent(node(f"gpu-{number}"), EPOCH - number) for number in range(1, 6)], [])
    )
    assert ([each.name for each in line.objects], line.more) == (["gpu-5", "gpu-4", "gpu-3"], 2)
