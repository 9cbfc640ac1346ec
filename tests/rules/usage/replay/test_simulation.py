"""Replays of small histories, reckoned by hand from docs/spec/quota.md and docs/spec/usage.md."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from tests.rules.usage.replay.pasts import (
    GPUS,
    HOUR,
    START,
    began,
    history,
    nodes,
    past,
    played,
    quota,
)

from fairlead.model.keys import PREEMPT_POLICY
from fairlead.model.quota.rows import Workload
from fairlead.model.usage.ledger import GPU
from fairlead.rules.usage.replay.history import PastPod, ReplayInput, TreeSpan
from fairlead.rules.usage.replay.simulation import PodStage, Replay

ONE = quota("root[4]{a[2/4] b[2/4]}")
STOP = 30 / HOUR


def test_a_pod_that_has_room_is_admitted_when_it_comes_and_runs_for_its_time() -> None:
    places = played(history([past("a", "p", 1, 2)], ONE, nodes(4)))
    assert began(places["p"]) == 1.0
    assert places["p"].state is PodStage.GONE
    assert places["p"].held == 2 * HOUR * 1000 * GPU
    assert places["p"].waited == 0.0


def test_a_pod_above_the_max_waits_until_another_has_ended() -> None:
    pods = [past("a", "first", 0, 5, 4), past("a", "second", 1, 2, 4)]
    places = played(history(pods, ONE, nodes(8)))
    assert began(places["second"]) == 5.0
    assert places["second"].waited == 4 * HOUR


def test_a_tree_with_more_room_takes_the_waiting_away() -> None:
    pods = [past("a", "first", 0, 5, 4), past("a", "second", 1, 2, 4)]
    places = played(history(pods, ONE, nodes(8)), quota("root[8]{a[4/8] b[4/8]}"))
    assert began(places["second"]) == 1.0


def test_a_guaranteed_pod_evicts_a_borrower_which_runs_again_from_the_beginning() -> None:
    pods = [past("a", "x", 0, 10, 2), past("a", "y", 0.5, 10, 2), past("b", "z", 4, 1, 2)]
    places = played(history(pods, ONE, nodes(4), hours=48))
    assert places["y"].evictions == 1, "of the two the newer pod goes"
    assert began(places["z"]) == round(4 + STOP, 3)
    held = 3.5 * HOUR * 1000 + 30_000  # until it had stopped
    assert places["y"].lost == 2 * GPU * 3.5 * HOUR * 1000
    assert places["y"].held == 2 * GPU * (held + 10 * HOUR * 1000)
    assert places["y"].waited == HOUR + 30, "until z had ended"


def test_an_evicted_pod_without_an_owner_does_not_come_back() -> None:
    tree = quota("root[4]{a[2/4] b[2/4]}", attributes={})
    pods = [past("a", "x", 0, 10, 4, owner=""), past("b", "z", 4, 1, 2)]
    places = played(history(pods, tree, nodes(4), hours=48))
    assert places["x"].state is PodStage.GONE
    assert places["x"].evictions == 1


def test_a_pod_of_a_service_goes_when_it_went_however_late_it_began() -> None:
    pods = [past("a", "first", 0, 5, 4), past("a", "web", 1, None, 4, ends=8)]
    places = played(history(pods, ONE, nodes(8)))
    assert began(places["web"]) == 5.0
    assert places["web"].held == 4 * GPU * 3 * HOUR * 1000
    gone = played(history([past("a", "first", 0, 9, 4), pods[1]], ONE, nodes(8)))["web"]
    assert (began(gone), gone.state, gone.waited) == (None, PodStage.GONE, 7 * HOUR)


def test_a_gang_is_admitted_all_or_nothing() -> None:
    gang = {"owner": "job", "gang": "job", "gang_size": 3}
    pods = [past("a", "x", 0, 3, 2)] + [past("a", f"g{at}", 1, 1, 1, **gang) for at in range(3)]
    places = played(history(pods, ONE, nodes(8)))
    assert [began(places[f"g{at}"]) for at in range(3)] == [3.0, 3.0, 3.0]


def test_a_launcher_comes_as_long_after_its_workers_as_it_did() -> None:
    gang = {"owner": "job", "gang": "mpijob/job", "gang_size": 2}
    pods = [
        past("a", "x", 0, 3, 4),
        past("a", "w0", 1, 2, 2, **gang),
        past("a", "w1", 1, 2, 2, **gang),
        past("a", "launcher", 1.5, 1, 0, follows=0.5 * HOUR, **gang),
    ]
    job = Workload("MPIJob", "kubeflow.org/v1", "a", "job", "job", least=2, late_pods=1, pods=3)
    places = played(history(pods, ONE, nodes(8), workloads={"job": job}))
    assert began(places["w0"]) == began(places["w1"]) == 3.0
    assert began(places["launcher"]) == 3.5


def ending_together(begin: float) -> list[PastPod]:
    """A launcher that ran for four hours from `begin` on, and two workers that end with it; the
    second one was admitted two hours later.
    """
    job = {"owner": "job", "gang": "mpijob/job", "gang_size": 1}
    launcher = past("a", "launcher", begin, 4, 0, **job)
    workers = [past("a", f"w{at}", begin, 4 - 2 * at, 2, **job) for at in range(2)]
    return [
        replace(launcher, ends_job=True),
        *(replace(each, ends_job=True, after_job=36.0) for each in workers),
    ]


def test_a_worker_that_is_admitted_earlier_than_in_the_past_runs_until_its_job_ends() -> None:
    places = played(history(ending_together(1), ONE, nodes(8)))
    lengths = {name: each.held / GPU / HOUR / 1000 for name, each in places.items()}
    assert lengths == {"launcher": 0.0, "w0": 2 * 4.01, "w1": 2 * 4.01}


def test_a_worker_that_still_waits_when_its_job_ends_runs_for_its_own_time() -> None:
    pods = [past("a", "x", 0, 6, 2), *ending_together(1)]
    places = played(history(pods, quota("root[4]{a[4/4]}"), nodes(4)))
    assert began(places["w1"]) == pytest.approx(5.01)
    assert places["w1"].held == 2 * GPU * 2 * HOUR * 1000


def test_pods_do_not_fit_where_no_node_has_room_and_begin_when_one_has() -> None:
    tree = quota("root[7]{a[3/7] b[4/7]}")
    pods = [past("a", "x", 0, 2, 3), past("b", "y", 0.5, 2, 4)]
    assert began(played(history(pods, tree, nodes(4, 3)))["y"]) == 2.0
    assert began(played(history(pods, tree, nodes(4, 4)))["y"]) == 0.5


def test_the_pods_of_a_node_that_goes_come_again() -> None:
    there = nodes(2, 2)
    there = (replace(there[0], ended_at=START + 3 * HOUR), there[1])
    pods = [past("a", "x", 0, 4, 2)]
    place = played(history(pods, ONE, there))["x"]
    assert place.evictions == 0
    assert place.lost == 2 * GPU * 3 * HOUR * 1000
    assert place.held == 2 * GPU * 7 * HOUR * 1000


def test_a_pod_that_ran_before_the_history_goes_on_where_it_was() -> None:
    early = past("a", "x", -2, 5, 4, node="node-0")
    later = past("a", "y", 1, 1, 4)
    places = played(history([early, later], ONE, nodes(4)))
    assert began(places["y"]) == 3.0
    assert places["x"].held == 4 * GPU * 3 * HOUR * 1000


def test_pods_that_quota_does_not_count_hold_what_they_held() -> None:
    pods = [past("other", "x", 0, 6, 4, node="node-0"), past("a", "y", 1, 1, 2)]
    places = played(history(pods, ONE, nodes(4)))
    assert places["x"].leaf == ""
    assert began(places["y"]) == 6.0


def test_a_pod_that_had_no_gate_though_quota_counted_it_is_held_by_no_tree() -> None:
    pods = [past("a", "x", 0, 6, 4), past("a", "y", 1, 1, 4, node="node-1")]
    free = replace(pods[1], is_gated=False)
    assert began(played(history(pods, ONE, nodes(4, 4)))["y"]) == 6.0
    assert began(played(history([pods[0], free], ONE, nodes(4, 4)))["y"]) == 1.0


def test_pods_go_back_to_the_nodes_where_they_were() -> None:
    pods = [past("a", "x", 1, 6, 1, node="node-1"), past("b", "y", 1, 6, 1, node="gone")]
    places = played(history(pods, ONE, nodes(4, 4)))
    assert places["x"].pod.node == "node-1"
    assert places["y"].pod.node == "node-0"


def test_a_victim_leaves_its_node_free_once_it_has_stopped() -> None:
    pods = [past("a", "x", 1, 6, 4, node="node-1"), past("b", "z", 2, 1, 2, node="node-1")]
    places = played(history(pods, ONE, nodes(4, 4)))
    assert places["x"].evictions == 1
    assert places["z"].pod.node == "node-1"


def test_a_suspended_job_is_resumed_and_runs_again() -> None:
    gang = {"owner": "job", "gang": "pytorchjob/job", "gang_size": 2}
    pods = [past("a", f"w{at}", 1, 4, 2, **gang) for at in range(2)]
    pods += [past("b", "z", 2, 1, 2)]
    job = Workload(
        "PyTorchJob",
        "kubeflow.org/v1",
        "a",
        "job",
        "job",
        can_suspend=True,
        pods=2,
        request={GPUS: 4},
        least=2,
    )
    places = played(history(pods, ONE, nodes(4), workloads={"job": job}))
    assert [places[name].evictions for name in ("w0", "w1", "z")] == [1, 1, 0]
    assert began(places["z"]) == round(2 + STOP, 3)
    assert places["w0"].state is PodStage.GONE
    assert places["w0"].held == 2 * GPU * (5 * HOUR * 1000 + 30_000)
    assert abs(places["w0"].waited - (HOUR + 30)) < 1, "until z had ended"


@pytest.mark.parametrize(("kind", "follows"), [("MPIJob", 0.0), ("RayJob", 0.5 * HOUR)])
def test_the_launcher_of_a_resumed_mpijob_comes_with_its_workers(kind: str, follows: float) -> None:
    """A RayJob's submitter comes when the cluster runs, each time anew."""
    gang = {"owner": "job", "gang": f"{kind.lower()}/job", "gang_size": 1}
    pods = [
        past("a", "w0", 1, 4, 4, **gang),
        past("a", "late", 1.5, 3.5, 0, follows=0.5 * HOUR, **gang),
        past("b", "z", 2, 1, 2),
    ]
    job = Workload(
        *(kind, "example.com/v1", "a", "job", "job"),
        can_suspend=True,
        pods=2,
        request={GPUS: 4},
        least=1,
        late_pods=1,
    )
    places = played(history(pods, ONE, nodes(4), workloads={"job": job}))
    assert places["w0"].evictions == places["late"].evictions == 1
    again = [places[name].pod.admitted_at or 0.0 for name in ("w0", "late")]
    assert abs(again[1] - again[0] - follows) < 1


def test_a_victim_stops_for_the_time_that_it_took_in_the_past() -> None:
    victim = replace(past("a", "x", 1, 6, 4), replaced=1, stopped=(7.0,))
    places = played(history([victim, past("b", "z", 2, 1, 2)], ONE, nodes(4)))
    assert places["x"].evictions == 1
    assert began(places["z"]) == round(2 + 7 / HOUR, 3)


@pytest.mark.parametrize("can_suspend", [True, False])
def test_a_victim_whose_gang_has_lost_a_pod_that_ended_does_not_wait_for_it(
    can_suspend: bool,
) -> None:
    gang = {"owner": "job", "gang": "pytorchjob/job", "gang_size": 2}
    pods = [past("a", "w0", 1, 4, 2, **gang), past("a", "w1", 1, 1.2, 2, **gang)]
    pods += [past("a", "y", 2.3, 9, 2), past("b", "z", 3, 1, 4)]
    job = Workload(
        "PyTorchJob",
        "kubeflow.org/v1",
        "a",
        "job",
        "job",
        can_suspend=can_suspend,
        pods=2,
        request={GPUS: 4},
        least=2,
    )
    tree = quota("root[4]{a[0/4] b[4/4]}")
    places = played(history(pods, tree, nodes(4), workloads={"job": job}))
    assert (places["w1"].state, places["w1"].evictions) == (PodStage.GONE, 0)
    assert (places["w0"].state, places["w0"].evictions) == (PodStage.GONE, 1)
    assert places["w0"].waited < 2 * HOUR, "until the job is resumed, after z"


def test_a_pod_that_claims_room_gets_it_before_pods_that_come_while_its_victim_stops() -> None:
    tree = quota("root[4]{a[0/4] b[2/4]}", attributes={"b": {PREEMPT_POLICY: "Never"}})
    pods = [past("a", "x", 0, 10, 2), past("a", "y", 0.5, 10, 2), past("b", "z", 4, 1, 2)]
    soon = past("b", "soon", 4 + 10 / HOUR, 1, 2, priority=10)
    places = played(history([*pods, soon], tree, nodes(4)))
    assert began(places["z"]) == round(4 + STOP, 3)
    assert places["z"].evictions == 0
    assert began(places["soon"]) == round(5 + STOP, 3), "z has the min of b, and ends then"


def test_a_tree_that_changes_counts_from_then_on() -> None:
    wide = quota("root[8]{a[4/8] b[4/8]}")
    trees = [TreeSpan(START, ONE), TreeSpan(START + 2 * HOUR, wide)]
    pods = [past("a", "x", 0, 5, 4), past("a", "y", 1, 1, 4)]
    assert began(played(history(pods, trees, nodes(8)))["y"]) == 2.0


def test_without_any_pod_or_node_nothing_happens() -> None:
    replay = Replay(history([], ONE))
    assert not any(replay.advance() for _ in range(1)) or not replay.advance()
    assert replay.held() == ()
    assert Replay(ReplayInput(START, START)).part_done == 1.0


SHAPES = (1, 1, 2, 3, 4)


def random_history(seed: int) -> ReplayInput:
    """Gangs, services, bare pods and single pods of three leaves on a few nodes, some of which
    come late or go early.
    """
    chance = random.Random(seed)
    pods = []
    for number in range(chance.randint(5, 60)):
        space, at = chance.choice("abc"), chance.uniform(-2, 40)
        kind = chance.choice(("job", "job", "gang", "web", "bare"))
        run = chance.uniform(0.1, 12)
        more = {"priority": chance.choice((0, 0, 10)), "is_preemptible": chance.random() < 0.9}
        if kind == "gang":
            size = chance.randint(2, 3)
            more |= {"owner": f"g{number}", "gang": f"g{number}", "gang_size": size}
            pods += [past(space, f"g{number}-{at_}", at, run, 1, **more) for at_ in range(size)]
        elif kind == "web":
            pods.append(past(space, f"w{number}", at, None, chance.choice(SHAPES), ends=at + run))
        else:
            owner = {"owner": ""} if kind == "bare" else {}
            pods.append(past(space, f"p{number}", at, run, chance.choice(SHAPES), **more, **owner))
    there = nodes(*(chance.choice((2, 4, 8)) for _ in range(chance.randint(1, 4))))
    tree = quota("root[8]{a[3/6] m[5/8]{b[2/8] c[3/4]}}")
    return history([each for each in pods if each.arrived_at >= START], tree, there, hours=60)


@pytest.mark.parametrize("seed", range(40))
def test_no_replay_holds_more_than_there_is_and_each_place_has_its_whole_run(seed: int) -> None:
    of = random_history(seed)
    replay = Replay(of)
    room = {span.room.name: span.room.allocatable[GPUS] for span in of.nodes}
    while replay.advance(1):
        on = dict.fromkeys(room, 0)
        in_leaf = dict.fromkeys("abc", 0)
        for pod in replay.holding():
            on[pod.node] += pod.request[GPUS]
            in_leaf[pod.namespace] += pod.request[GPUS]
        assert all(on[name] <= most for name, most in room.items())
        assert in_leaf["a"] <= 6
        assert in_leaf["c"] <= 4
        assert in_leaf["b"] + in_leaf["c"] <= 8
        assert sum(in_leaf.values()) <= 8
    for place in replay.places:
        run = place.past.run_seconds
        if place.state is PodStage.GONE and run is not None and place.past.pod.owner:
            stops = place.held - place.lost - round(run * 1000) * place.past.gpu
            assert 0 <= stops <= place.evictions * 30_000 * place.past.gpu
    again = Replay(of)
    while again.advance(7):
        pass
    assert [(each.admitted_at, each.held) for each in again.places] == [
        (each.admitted_at, each.held) for each in replay.places
    ], "the same history gives the same replay"
