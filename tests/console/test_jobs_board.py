"""The Training jobs board: words, counts, waiting reasons, and one job in full."""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.console.clusters import (
    CARD_MIB,
    EPOCH,
    GATED,
    cluster,
    gpu_node,
    pod,
    quota_tree,
    reading,
    training_job,
)

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.rows import matching
from fairlead.console.pages.envelope import Sentence
from fairlead.console.pages.list_query import ListQuery
from fairlead.model.event import Event
from fairlead.model.jobs.job import Job
from fairlead.model.node import Condition, Node, Taint
from fairlead.model.node_choice import NodeChoice

GPU = {"nvidia.com/gpu": 1}


def board_state(*args: object, **more: object) -> BoardState:
    return BoardState(cluster(*args, **more), EPOCH)  # type: ignore[arg-type]


def only_row(seen: BoardState):  # type: ignore[no-untyped-def]
    (entry,) = seen.jobs.entries
    return entry.row


def found(seen: BoardState, **filters: str) -> list[str]:
    asked = ListQuery(filters={name: frozenset({value.lower()}) for name, value in filters.items()})
    return [row.name for row in matching(seen.jobs, asked)]


def running(job: Job) -> BoardState:
    pods = [pod(f"{job.name}-worker-{number}", "gpu-1", GPU, job=job) for number in range(2)]
    gpus = [
        reading(
            index=number,
            used_mib=1000.0 * (number + 1),
            ratio=0.2 * (number + 1),
            holder=pods[number],
        )
        for number in range(2)
    ]
    return board_state([gpu_node(gpus=2)], pods, [job], gpus, quota_tree())


def test_a_running_job_shows_what_it_asked_holds_and_uses() -> None:
    row = only_row(running(training_job()))
    assert (row.status, row.state, row.waiting) == ("Running", "RUNNING", None)
    assert (row.gpus_requested, row.gpus_allocated) == (2, 2)
    assert (row.gpu_memory_allocated_mib, row.gpu_memory_used_mib, row.gpu_util_percent) == (
        2 * CARD_MIB,
        3000,
        30,
    )
    assert (row.duration_seconds, row.nodes, row.quota_path, row.live) == (
        290,
        ["gpu-1"],
        "root.a",
        True,
    )
    assert (row.instances.desired, row.instances.running) == (2, 2)


def test_requested_gpus_are_right_before_any_pod_exists() -> None:
    row = only_row(board_state(jobs=[training_job(workers=4, gpus=8, state="Created")]))
    assert (row.gpus_requested, row.gpus_allocated, row.duration_seconds) == (32, 0, 0)
    assert (row.gpu_memory_allocated_mib, row.gpu_memory_used_mib, row.gpu_util_percent) == (
        0,
        None,
        None,
    )
    assert row.waiting is not None and row.waiting.message.startswith("0 of 4 pods exist")


def test_the_duration_stops_with_the_job() -> None:
    row = only_row(board_state(jobs=[training_job(state="Succeeded", finished_at=EPOCH - 190)]))
    assert (row.status, row.duration_seconds, row.finished_at) == (
        "Succeeded",
        100,
        "2026-01-05T07:56:50Z",
    )


@pytest.mark.parametrize(
    ("state", "board", "exact"),
    [
        ("Created", "Pending", "PENDING"),
        ("Suspended", "Pending", "SUSPENDED"),
        ("Queuing", "Pending", "QUEUING"),
        ("Running", "Running", "RUNNING"),
        ("Restarting", "Running", "RESTARTING"),
        ("Succeeded", "Succeeded", "SUCCEEDED"),
        ("Failed", "Failed", "FAILED"),
    ],
)
def test_the_board_shows_four_words_and_keeps_the_exact_state(
    state: str, board: str, exact: str
) -> None:
    seen = board_state(jobs=[training_job(workers=0, state=state)])
    row = only_row(seen)
    assert (row.status, row.state) == (board, exact)
    assert found(seen, job_status=board) == found(seen, job_status=exact) == ["bert"]


def test_a_running_job_with_a_pending_pod_waits_with_the_reason() -> None:
    job = training_job()
    reason = Condition(
        "PodScheduled",
        "False",
        "Unschedulable",
        "0/6 nodes are available: 6 Insufficient nvidia.com/gpu.",
    )
    row = only_row(
        board_state(
            [gpu_node()],
            [
                pod("bert-worker-0", "gpu-1", GPU, job=job),
                pod("bert-worker-1", job=job, conditions=[reason]),
            ],
            [job],
        )
    )
    assert row.status == "Pending"
    assert row.waiting is not None
    assert (row.waiting.reason, row.waiting.message) == (
        "Unschedulable",
        "0/6 nodes are available: 6 Insufficient nvidia.com/gpu.",
    )


def test_a_suspended_job_is_reported_before_anything_else() -> None:
    row = only_row(board_state(jobs=[training_job(state="Suspended", suspended=True)]))
    assert row.waiting is not None and row.waiting.reason == "Suspended"


def test_a_gated_pod_waits_for_its_quota() -> None:
    job = training_job(state="Created")
    row = only_row(
        board_state(pods=[pod("bert-worker-0", job=job, gates=("fairlead.io/quota",))], jobs=[job])
    )
    assert row.waiting is not None and row.waiting.reason == "QuotaGated"


def restarting(*waits: bool) -> BoardState:
    """A job created 3000 s ago that is restarting. Each of `waits` is a pod: it has waited for
    quota for 900 s, or runs.
    """
    job = training_job(state="Restarting", created_at=EPOCH - 3000)
    pods = [
        structs.replace(
            pod(
                f"bert-worker-{n}",
                "" if held else "gpu-1",
                GPU,
                job=job,
                gates=GATED if held else (),
            ),
            created_at=EPOCH - 900,
        )
        for n, held in enumerate(waits)
    ]
    return board_state([gpu_node()], pods, [job], quota=quota_tree())


def test_a_job_that_restarts_and_waits_for_quota_reports_it_and_keeps_its_status() -> None:
    seen = restarting(True, True)
    row = only_row(seen)
    assert (row.status, row.state) == ("Running", "RESTARTING")
    assert row.waiting is not None and row.waiting.reason == "QuotaGated"
    (wait,) = seen.my_work("", "team-a").waits
    assert (wait.name, wait.waiting.reason, wait.since) == (
        "bert",
        "QuotaGated",
        "2026-01-05T07:45:00Z",
    ), "not since the job was made"
    (line,) = [line for line in seen.overview.attention if line.kind == "jobs-waiting"]
    assert (line.objects[0].name, line.since) == ("bert", "2026-01-05T07:45:00Z")
    assert (seen.overview.jobs.running, seen.overview.jobs.pending) == (1, 0), "decision 3"


@pytest.mark.parametrize(
    "waits", [(True, False), (False, False), ()], ids=["a pod runs", "all run", "no pod yet"]
)
def test_a_job_that_restarts_and_of_which_a_pod_runs_does_not_wait(waits: tuple[bool, ...]) -> None:
    seen = restarting(*waits)
    assert only_row(seen).waiting is None and seen.my_work("", "team-a").waits == []


def test_newest_jobs_come_first() -> None:
    jobs = [
        training_job("old", created_at=EPOCH - 900),
        training_job("new", created_at=EPOCH - 10),
        training_job("mid", created_at=EPOCH - 90),
    ]
    assert found(board_state(jobs=jobs)) == ["new", "mid", "old"]


def test_filters_match_namespace_type_name_and_leaf() -> None:
    seen = board_state(
        jobs=[training_job("a"), training_job("b", namespace="team-c")], quota=quota_tree()
    )
    assert (
        found(seen, job_namespace="team-c")
        == found(seen, leaf="root.b")
        == found(seen, job_name="B")
        == ["b"]
    )
    assert found(seen, job_type="mpijob") == []
    assert seen.jobs.facets["job_namespace"] == ["team-a", "team-c"]


def test_the_sentence_counts_states_and_names_the_longest_wait() -> None:
    jobs = [
        training_job("w", state="Created", created_at=EPOCH - 192),
        training_job("d", state="Failed", finished_at=EPOCH),
    ]
    assert board_state(jobs=jobs).jobs_sentence.text == (
        "0 jobs running on 0 GPUs, 1 pending (the oldest for 3m12s), 0 succeeded, 1 failed."
    )
    assert board_state().jobs_sentence.code == "jobs-none"


def test_one_job_shows_its_instances_with_their_cards() -> None:
    detail = running(training_job()).job("team-a", "pytorchjob", "bert")
    assert detail is not None
    assert [
        (each.name, each.status, each.gpu_indexes, each.gpu_memory_used_mib)
        for each in detail.instances
    ] == [
        ("bert-worker-0", "Running", [0], 1000),
        ("bert-worker-1", "Running", [1], 2000),
    ]


def test_events_are_the_jobs_and_its_pods_only_newest_first() -> None:
    job = training_job()

    def event(name: str, at: float, kind: str, object_name: str, uid: str) -> Event:
        return Event(
            "team-a",
            name,
            object_kind=kind,
            object_namespace="team-a",
            object_name=object_name,
            object_uid=uid,
            at=at,
        )

    events = (
        event("e1", EPOCH - 9, "PyTorchJob", "bert", job.uid),
        event("e2", EPOCH - 1, "Pod", "bert-worker-0", "uid-bert-worker-0"),
        event("e3", EPOCH - 5, "Pod", "bert-worker-0", "uid-of-the-pod-before"),
        event("e4", EPOCH - 2, "Pod", "stranger", "uid-stranger"),
        event("e5", EPOCH - 3, "Pod", "bert-worker-0", ""),
    )
    detail = board_state(pods=[pod("bert-worker-0", job=job)], jobs=[job], events=events).job(
        "team-a", "pytorchjob", "bert"
    )
    assert detail is not None
    assert [each.at for each in detail.events] == [
        "2026-01-05T07:59:59Z",
        "2026-01-05T07:59:57Z",
        "2026-01-05T07:59:51Z",
    ]


@pytest.mark.parametrize(
    "key",
    [
        ("team-b", "pytorchjob", "bert"),
        ("team-a", "mpijob", "bert"),
        ("team-a", "pytorchjob", "gpt"),
    ],
)
def test_a_job_that_does_not_exist_is_none(key: tuple[str, str, str]) -> None:
    assert running(training_job()).job(*key) is None


UNSCHEDULABLE = (Condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available"),)


def why(node: Node, limits: dict[str, int], choice: NodeChoice | None = None) -> Sentence:
    job = training_job(workers=1, state="Created")
    asking = structs.replace(
        pod("bert-worker-0", "", limits, job=job, conditions=UNSCHEDULABLE),
        node_choice=choice or NodeChoice(),
    )
    row = only_row(board_state([node], [asking], [job]))
    assert row.waiting is not None and row.waiting.sentence is not None
    return row.waiting.sentence


def test_requested_and_granted_are_shown_in_one_unit() -> None:
    reported = why(gpu_node(), {"memory": 1000 << 30})
    assert reported.text == "needs 1000 GiB of memory on one node; the largest of 1, gpu-1, has 512"
    assert reported.values == {
        "asked": 1000,
        "resource": "memory",
        "nodes": 1,
        "best": "gpu-1",
        "had": 512,
        "labels": "",
    }
    cores = why(gpu_node(), {"cpu": 100_500})
    assert (cores.values["asked"], cores.values["had"]) == (100.5, 64)


def test_a_pod_that_may_use_no_node_gets_what_keeps_it_out_and_never_nothing() -> None:
    wish = NodeChoice(selector=(("gpu", "A100"),))
    assert why(gpu_node(), GPU, wish).code == "why-barred-label"
    assert why(gpu_node(), GPU, wish).values == {"nodes": 1, "label": "gpu=A100"}
    assert why(gpu_node(cordoned=True), GPU).code == "why-barred-cordoned"
    tainted = structs.replace(
        gpu_node(cordoned=True), taints=(Taint("dedicated", "", "NoSchedule"),)
    )
    assert (why(tainted, GPU).code, why(tainted, GPU).values) == (
        "why-barred-taints-cordoned",
        {"nodes": 1, "taints": "dedicated", "cordoned": 1},
    )
    far = structs.replace(gpu_node(), labels={"gpu": "A100", "zone": "b"})
    other = NodeChoice(selector=(("gpu", "A100"),), terms=())
    assert why(far, GPU, other).text == (
        "may not use its node: selector, affinity or taints rule them out"
    )
    assert why(far, GPU, other).code == "why-barred"


def test_a_wait_that_fairlead_reports_has_a_code_and_values() -> None:
    (row,) = [
        entry.row
        for entry in board_state(jobs=[training_job(workers=4, state="Created")]).jobs.entries
    ]
    assert row.waiting is not None and row.waiting.sentence is not None
    assert (row.waiting.sentence.code, row.waiting.sentence.values) == (
        "wait-pods-missing",
        {"there": 0, "desired": 4},
    )
    assert row.waiting.sentence.text == row.waiting.message
