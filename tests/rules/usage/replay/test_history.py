"""The places of a history, read from states of pods."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from fairlead.model.keys import LABEL_MANAGED, QUOTA_CONDITION, QUOTA_GATE
from fairlead.model.node import Condition
from fairlead.model.pod import Container, Owner, Pod, PodPhase
from fairlead.model.quota.rows import Workload
from fairlead.model.usage.ledger import OPEN, StateKind
from fairlead.rules.usage.replay.history import PastPod, PastRow, ReplayReader

GPUS = "nvidia.com/gpu"
END = 100_000


def owner(kind: str, uid: str = "owner") -> tuple[Owner, ...]:
    return (Owner(kind, uid, uid, controller=True),)


def waiting(name: str, at: float, kind: str = "Job", gpus: int = 1, **more: Any) -> Pod:
    containers = (Container("main", requests={GPUS: gpus}),)
    pod = Pod("a", name, f"uid-{name}", {LABEL_MANAGED: "true"}, owners=owner(kind))
    return replace(pod, gates=(QUOTA_GATE,), containers=containers, created_at=at, **more)


def bound(pod: Pod, at: float) -> Pod:
    conditions = (
        Condition(QUOTA_CONDITION, "True", "Admitted", at=at),
        Condition("PodScheduled", "True", at=at),
    )
    return replace(pod, gates=(), node="n", phase=PodPhase.RUNNING, conditions=conditions)


def life(*states: tuple[float, Pod], gone: float | None = None) -> list[PastRow]:
    """Each state lasts until the next one."""
    ends = [at for at, _ in states[1:]] + [gone]
    return [
        PastRow(
            StateKind.POD,
            pod.uid,
            round(at * 1000),
            OPEN if end is None else round(end * 1000),
            pod,
        )
        for (at, pod), end in zip(states, ends, strict=True)
    ]


def read(*lives: list[PastRow]) -> dict[str, PastPod]:
    reader = ReplayReader(0, END * 1000)
    reader.observe([row for each in lives for row in each])
    return {each.pod.name: each for each in reader.replay_input().pods}


def ran(name: str, at: float, bind: float, end: float, kind: str = "Job") -> list[PastRow]:
    """A pod that succeeded."""
    pod = waiting(name, at, kind)
    done = replace(bound(pod, bind), phase=PodPhase.SUCCEEDED)
    return life((at, pod), (bind, bound(pod, bind)), (end, done), gone=end + 10)


def evicted(name: str, at: float, bind: float, stop: float, kind: str = "Job") -> list[PastRow]:
    """A pod that was deleted, and stopped for five seconds."""
    pod = waiting(name, at, kind)
    stops = replace(bound(pod, bind), deleted_at=stop + 30)
    failed = replace(stops, phase=PodPhase.FAILED)
    return life(
        (at, pod), (bind, bound(pod, bind)), (stop, stops), (stop + 5, failed), gone=stop + 5
    )


def test_a_pod_that_finished_ran_from_its_admission_to_its_end() -> None:
    past = read(ran("p", 10, 40, 100))["p"]
    assert (past.arrived_at, past.admitted_at, past.ended_at) == (10.0, 40.0, 100.0)
    assert (past.run_seconds, past.stops, past.replaced) == (60.0, 0.0, 0)
    assert past.spells == ((10.0, 40.0),)
    assert past.node == "n"


def test_an_evicted_pod_and_what_came_instead_are_one_place() -> None:
    found = read(evicted("p", 10, 40, 100), ran("q", 101, 500, 800))
    assert list(found) == ["p"]
    past = found["p"]
    assert past.replaced == 1
    assert past.spells == ((10.0, 40.0), (105.0, 500.0)), "the first waited, then the place"
    assert past.run_seconds == 300.0, "the last run is a whole one"
    assert past.ended_at == 800.0


def test_a_job_goes_on_after_any_time_and_a_service_only_within_a_minute() -> None:
    assert list(read(evicted("p", 10, 40, 100), ran("q", 4000, 4001, 5000))) == ["p"]
    kind = "ReplicaSet"
    later = read(evicted("p", 10, 40, 100, kind), ran("q", 4000, 4001, 5000, kind))
    assert list(later) == ["p", "q"], "it was scaled up again"
    assert later["p"].run_seconds is None, "a service goes when it went"
    assert later["p"].stops == 5.0


def test_another_request_is_another_place() -> None:
    other = waiting("q", 101, gpus=2)
    found = read(evicted("p", 10, 40, 100), life((101, other)))
    assert list(found) == ["p", "q"]


def finished_job(kind: str, at: float) -> list[PastRow]:
    job = Workload(kind, "example.com/v1", "a", "owner", "owner", pods=3)
    done, ended = replace(job, is_finished=True), round(at * 1000)
    return [
        PastRow(StateKind.WORKLOAD, "owner", 0, ended, job),
        PastRow(StateKind.WORKLOAD, "owner", ended, OPEN, done),
    ]


@pytest.mark.parametrize("kind", ["MPIJob", "Job"])
def test_the_workers_of_a_job_end_with_its_launcher_and_the_pods_of_a_job_by_themselves(
    kind: str,
) -> None:
    """`w-1` was admitted 200 seconds after the others."""
    found = read(
        ran("launcher", 0, 10, 300, kind),
        evicted("w-0", 0, 10, 300.5, kind),
        evicted("w-1", 0, 210, 300.5, kind),
        evicted("early", 0, 10, 100, kind),
        finished_job(kind, 300),
    )
    lag = 0.5 if kind == "MPIJob" else None
    assert {name: each.after_job for name, each in found.items()} == {
        "launcher": None,
        "w-0": lag,
        "w-1": lag,
        "early": None,
    }
    assert found["w-1"].run_seconds == 90.5


def test_a_retry_comes_after_the_pod_that_finished() -> None:
    found = read(ran("p", 10, 40, 100), ran("q", 105, 106, 300))
    assert found["q"].after == "uid-p"
    assert found["p"].after == ""
    late = read(ran("p", 10, 40, 100), ran("q", 300, 306, 400))
    assert late["q"].after == ""


def test_a_pod_that_another_controller_holds_arrives_when_that_gate_has_gone() -> None:
    pod = waiting("p", 10)
    held = replace(pod, gates=(QUOTA_GATE, "example.com/topology"))
    past = read(life((10, held), (60, pod), (90, bound(pod, 90))))["p"]
    assert (past.arrived_at, past.admitted_at) == (60.0, 90.0)


def test_a_pod_without_the_gate_was_admitted_when_it_came() -> None:
    pod = replace(waiting("p", 10), gates=(), labels={})
    past = read(life((10, pod), (20, replace(pod, node="n"))))["p"]
    assert past.is_gated is False
    assert past.admitted_at == 10.0


def test_what_the_recorder_saw_late_has_the_times_of_the_object() -> None:
    pod = waiting("p", 1000)
    past = read(life((2000, bound(pod, 1010))))["p"]
    assert (past.arrived_at, past.admitted_at, past.bound_at) == (1000.0, 1010.0, 1010.0)


def test_a_finished_pod_is_no_place() -> None:
    pod = replace(bound(waiting("p", 10), 20), phase=PodPhase.SUCCEEDED)
    assert read(life((30, pod))) == {}
