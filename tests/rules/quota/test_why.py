"""The answers of `quota why`: the sentences of docs/spec/quota.md#conditions-and-sentences in the
states of its demo.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rules.quota.small import tree

from fairlead.errors import UserError
from fairlead.model.event import Event
from fairlead.model.pod import Owner, Pod, PodPhase
from fairlead.model.quota.plan import MissingAmount, QuotaPlan
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import NodeRoom, QuotaPod, QuotaState
from fairlead.model.snapshot import ClusterSnapshot, build_snapshot
from fairlead.model.source import Source
from fairlead.rules.quota.plan import plan_quota
from fairlead.rules.quota.why import (
    SHOWN_BEFORE_MAX,
    EvictionCount,
    QueuePlace,
    QuotaAnswer,
    why_quota,
)

DEMO = tree("root[40]{a[20/40]{a1[10/20] a2[10/20]} b[20/40]{b1[10/20] b2[10/20]}}", resource="cpu")


def deployment(space: str, admitted: int, waiting: int, **more: Any) -> list[QuotaPod]:
    return [
        QuotaPod(
            space,
            f"web-{number}",
            f"{space}/{number}",
            {"cpu": 5000},
            is_admitted=number < admitted,
            is_ready=number < admitted,
            created_at=float(number),
            owner=f"{space}-web",
            **more,
        )
        for number in range(admitted + waiting)
    ]


AFTER_NGINX3 = [*deployment("a1", 3, 2), *deployment("a2", 3, 2), *deployment("b1", 2, 3)]


def seen(pods: Iterable[QuotaPod], others: Iterable[Pod] = ()) -> ClusterSnapshot:
    rows = [
        Pod(
            pod.namespace,
            pod.name,
            pod.uid,
            owners=(Owner("ReplicaSet", "web-7", pod.owner, True),),
        )
        for pod in pods
    ]
    return build_snapshot(taken_at=100.0, pods=[*rows, *others])


def ask(
    name: str,
    pods: list[QuotaPod] = AFTER_NGINX3,
    *,
    others: Iterable[Pod] = (),
    plan: QuotaPlan | None = None,
    **state: Any,
) -> QuotaAnswer:
    [answer] = ask_all(name, pods, others=others, plan=plan, **state)
    return answer


def ask_all(
    name: str,
    pods: list[QuotaPod] = AFTER_NGINX3,
    *,
    others: Iterable[Pod] = (),
    plan: QuotaPlan | None = None,
    **state: Any,
) -> list[QuotaAnswer]:
    whole = QuotaState(DEMO, tuple(pods), now=100.0, **state)
    namespace, _, pod = name.partition("/")
    return why_quota(seen(pods, others), whole, plan or plan_quota(whole), namespace, pod)


def test_a_waiting_pod_of_the_demo_gets_the_names_of_borrowers() -> None:
    answer = ask("b1/web-2")

    assert answer.reason == "WaitingForIdleQuota"
    assert answer.leaf == "b1"
    assert answer.sentence == (
        "cpu asks 5; root 40/40 in use; b1 uses 10 of guaranteed 10, so it may only borrow "
        "idle quota; biggest borrowers: a1 +5, a2 +5"
    )
    assert [(each.leaf, each.over) for each in answer.units[0].row.borrowers] == [
        ("a1", 5000),
        ("a2", 5000),
    ]
    assert [(each.node, each.used, each.max) for each in answer.units[0].row.blocked] == [
        ("root", 40_000, 40_000)
    ]
    assert answer.units[0].row.position == 1


def test_positions_count_within_the_leaf() -> None:
    assert [ask(f"b1/web-{number}").units[0].in_leaf for number in (2, 3, 4)] == [
        QueuePlace(1, 3),
        QueuePlace(2, 3),
        QueuePlace(3, 3),
    ]


def test_what_the_condition_contains_stays_if_it_is_for_the_same_reason() -> None:
    printed = replace(
        AFTER_NGINX3[-1],
        condition_reason="WaitingForIdleQuota",
        condition_message="as the controller wrote it",
    )
    other = replace(
        AFTER_NGINX3[-1], condition_reason="OverMax", condition_message="as it was before"
    )

    assert ask("b1/web-4", [*AFTER_NGINX3[:-1], printed]).sentence == "as the controller wrote it"
    assert ask("b1/web-4", [*AFTER_NGINX3[:-1], other]).sentence == ask("b1/web-4").sentence


def test_a_job_gets_the_number_of_its_pods_that_wait() -> None:
    answer = ask("b1/web")

    assert answer.kind == "Deployment"
    assert (answer.pods, answer.admitted, len(answer.units)) == (5, 2, 3)
    assert answer.sentence.startswith("3 of 5 pods wait: cpu asks 5; root 40/40 in use")


def test_a_job_that_we_suspended_waits_without_pods() -> None:
    job = Workload(
        "Job",
        "batch/v1",
        "b1",
        "train",
        "uid-train",
        can_suspend=True,
        is_suspended=True,
        suspended_for="a1/x",
        pods=4,
    )
    whole = plan_quota(QuotaState(DEMO, tuple(AFTER_NGINX3), now=100.0))
    row = replace(whole.waiting[0], unit="b1/train", leaf="b1", pods=(), workload=job)

    answer = ask("b1/train", plan=replace(whole, waiting=(row,)), workloads={"uid-train": job})

    assert answer.sentence == f"4 of 4 pods wait: {row.message}"


def test_an_admitted_pod_gets_what_its_leaf_borrows() -> None:
    """The answer gives the current numbers; the condition has those of the time of admission."""
    then = replace(
        AFTER_NGINX3[0],
        condition_reason="Admitted",
        condition_message="a1 uses 5 of guaranteed 10 cpu, borrows 0",
    )
    answer = ask("a1/web-0", [then, *AFTER_NGINX3[1:]])

    assert answer.reason == "Admitted"
    assert answer.sentence == "a1 uses 15 of guaranteed 10 cpu, borrows 5"
    assert not answer.units


def test_a_pod_with_room_that_goes_first_or_that_has_to_go_gets_the_reason() -> None:
    pods = [*deployment("a1", 4, 0), *deployment("a2", 4, 0), *deployment("b1", 0, 1)]
    claimed = ask("b1/web-0", pods)
    assert claimed.reason == "WaitingForEvictions"
    victim = next(each for each in plan_quota(QuotaState(DEMO, tuple(pods), now=100.0)).evict)
    answer = ask(victim.pod.key, pods)
    assert (answer.reason, "b1/web-0" in answer.sentence) == ("Reclaimed", True)

    lone = deployment("b1", 0, 1)
    assert ask("b1/web-0", lone).reason == "HasRoom"
    assert (
        ask("b1/web-0", [replace(lone[0], is_admitted=True, is_stopping=True)]).reason == "Stopping"
    )


def test_a_pod_that_goes_for_a_lowered_max_makes_room_for_no_unit() -> None:
    drains = tree("root[9]{a[0/2] b[0]}", {"a": {"fairlead.io/drain-over-max": "true"}})
    pods = [replace(each, request={"gpu": 1}) for each in deployment("a", 3, 0)]
    whole = QuotaState(drains, tuple(pods), now=100.0)
    [answer] = why_quota(seen(pods), whole, plan_quota(whole), "a", "web-2")
    assert (answer.reason, answer.sentence) == (
        "Reclaimed",
        "it is to be evicted: a gives up what it uses above its max of 2 gpu",
    )


def test_pods_that_are_not_counted() -> None:
    stranger = Pod("elsewhere", "p", "s")
    daemon = Pod("a1", "agent-x", "d", owners=(Owner("DaemonSet", "agent", "ds", True, "apps/v1"),))
    ended = Pod("a1", "done", "e", phase=PodPhase.SUCCEEDED)

    assert (
        "elsewhere is on no leaf of the quota tree"
        in ask("elsewhere/p", others=[stranger]).sentence
    )
    assert ask("a1/agent-x", others=[daemon]).sentence == (
        "it is a pod of DaemonSet agent, which quota does not count"
    )
    assert ask("a1/done", others=[ended]).reason == "Finished"


def test_a_pod_and_a_job_of_one_name_are_both_answered() -> None:
    job = Workload("Job", "batch/v1", "b1", "web-2", "other")
    assert [each.kind for each in ask_all("b1/web-2", workloads={"other": job})] == ["pod", "Job"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("a1/web-9", "namespace a1 has web-0, web-1, web-2, web-3, web-4"),
        ("b2/web-0", "there is a1/web-0, a2/web-0, b1/web-0"),
        ("b2/none", "namespace b2 has no pods; the quota tree has the namespaces a1, a2, b1, b2"),
    ],
)
def test_a_name_that_is_absent_is_reported_with_those_that_are(name: str, hint: str) -> None:
    with pytest.raises(UserError, match=f"`{name}`") as caught:
        ask(name)
    assert caught.value.hint == hint


def waits(leaf: str, name: str, **more: Any) -> QuotaPod:
    return QuotaPod(leaf, name, f"{leaf}/{name}", {"cpu": 5000}, owner=f"{leaf}-{name}", **more)


def test_places_over_all_leaves_follow_the_order_of_the_contract() -> None:
    """The order: claimants, oldest claim first; then guaranteed units; higher priority; the leaf
    that borrows less; age; units that can never run last.
    """
    pods = [
        *deployment("a1", 3, 0),
        *deployment("a2", 3, 0),
        *(
            replace(pod, name=f"run-{pod.name}", uid=f"run/{pod.uid}")
            for leaf in ("b1", "b2")
            for pod in deployment(leaf, 1, 0)
        ),
        waits(
            "b1",
            "claims-late",
            claim_since=20.0,
            condition_reason="WaitingForEvictions",
            created_at=1.0,
        ),
        waits(
            "b2",
            "claims-soon",
            claim_since=10.0,
            condition_reason="WaitingForEvictions",
            created_at=2.0,
        ),
        waits("a1", "old", created_at=5.0),
        waits("a1", "urgent", priority=7, created_at=9.0),
        waits("a2", "young", created_at=6.0),
        replace(waits("b2", "huge"), request={"cpu": 50_000}),
    ]
    whole = QuotaState(DEMO, tuple(pods), now=100.0)
    plan = plan_quota(whole)
    order = ["b2/claims-soon", "b1/claims-late", "a1/urgent", "a1/old", "a2/young", "b2/huge"]
    assert [row.unit for row in sorted(plan.waiting, key=lambda row: row.overall)] == order

    answer = ask("a1/old", pods)
    [unit] = answer.units
    assert (unit.in_leaf, unit.overall) == (QueuePlace(2, 2), QueuePlace(4, 6))
    assert [row.unit for row in unit.ahead] == ["a1/urgent"]
    assert unit.ahead_elsewhere == {"b1": 1, "b2": 1}
    assert (answer.since, answer.priority, answer.reason_since) == (5.0, 0, None)
    assert ask("a1/urgent", pods).priority == 7
    printed = [
        replace(pod, condition_reason="OverMax", condition_since=60.0, condition_message="x")
        if pod.name == "old"
        else pod
        for pod in pods
    ]
    assert ask("a1/old", printed).reason_since == (60.0 if answer.reason == "OverMax" else None)


def test_those_before_it_are_named_up_to_a_number_and_counted() -> None:
    pods = [*deployment("a1", 4, SHOWN_BEFORE_MAX + 5)]
    [unit] = ask(f"a1/web-{SHOWN_BEFORE_MAX + 8}", pods).units
    assert unit.in_leaf == QueuePlace(SHOWN_BEFORE_MAX + 5, SHOWN_BEFORE_MAX + 5)
    assert [row.position for row in unit.ahead] == list(range(1, SHOWN_BEFORE_MAX + 1))


def test_what_would_have_to_be_free() -> None:
    assert ask("b1/web-2").units[0].lacks == (MissingAmount("max", "root", "cpu", 5000),)
    nodes = tuple(NodeRoom(f"n{number}", {"cpu": free}) for number, free in ((1, 2000), (2, 3000)))
    [unit] = ask("a1/web-0", [waits("a1", "web-0")], nodes=nodes).units
    assert (str(unit.row.reason), unit.lacks) == (
        "NoFitOnNodes",
        (MissingAmount("node", "n2", "cpu", 2000),),
    )
    capped = [*deployment("a1", 1, 1, user="bob")]
    [unit] = ask("a1/web-1", capped, user_caps={("a1", "bob"): {"cpu": 8000}}).units
    assert (str(unit.row.reason), unit.lacks) == (
        "UserCap",
        (MissingAmount("cap", "bob", "cpu", 2000),),
    )
    firm = [*deployment("a1", 2, 1, is_preemptible=False)]
    [unit] = ask("a1/web-2", firm).units
    assert (str(unit.row.reason), unit.lacks) == (
        "NonPreemptibleOverMin",
        (MissingAmount("min", "a1", "cpu", 5000),),
    )


def test_the_own_claim_of_a_claimant_is_no_obstacle() -> None:
    """b1 requests 5 of its 10 and claims them. It lacks 5 below root, and nothing in its own leaf,
    whose max is 20.
    """
    pods = [*deployment("a1", 4, 0), *deployment("a2", 4, 0), *deployment("b1", 0, 4)]
    [unit] = ask("b1/web-0", pods).units
    assert str(unit.row.reason) == "WaitingForEvictions"
    assert [(each.node, each.used, each.claimed) for each in unit.row.blocked] == [
        ("root", 40_000, 5000)
    ], "the other's claim"
    assert unit.lacks == (MissingAmount("max", "root", "cpu", 10_000),)
    [alone] = ask(
        "b1/web-0", [*deployment("a1", 4, 0), *deployment("a2", 4, 0), *deployment("b1", 0, 1)]
    ).units
    assert [(each.node, each.claimed) for each in alone.row.blocked] == [("root", 0)]
    assert alone.lacks == (MissingAmount("max", "root", "cpu", 5000),)


def test_evictions_are_counted_as_far_as_events_are_kept() -> None:
    def about(uid: str, reason: str, message: str, count: int, at: float) -> Event:
        return Event(
            "b1",
            f"e{at}",
            type="Warning",
            reason=reason,
            message=message,
            object_uid=uid,
            count=count,
            at=at,
        )

    events = [
        about(
            "b1-web",
            "QuotaReclaimed",
            "web-9: a1/x takes back 5 of the 10 cpu guaranteed to a1",
            2,
            40.0,
        ),
        about("b1-web", "QuotaReclaimed", "makes room for a1/x; parallelism 4 is 2 now", 1, 40.0),
        about("b1-web", "QuotaSuspended", "makes room for a1/y", 1, 70.0),
        about("b1-web", "QuotaWaiting", "3 of 5 pods wait", 9, 80.0),
        about("b1/2", "QuotaReclaimed", "a1/x takes back", 1, 70.0),
        about("a1-web", "QuotaReclaimed", "another's", 5, 90.0),
    ]
    whole = QuotaState(DEMO, tuple(AFTER_NGINX3), now=100.0)

    def asked(snapshot: ClusterSnapshot) -> QuotaAnswer:
        [answer] = why_quota(snapshot, whole, plan_quota(whole), "b1", "web-2")
        return answer

    read = replace(seen(AFTER_NGINX3), events=tuple(events), sources={"events": Source("events")})
    assert asked(read).evicted == EvictionCount(3, 70.0)
    assert asked(replace(read, events=())).evicted == EvictionCount(0, None)
    assert asked(replace(read, sources={})).evicted is None, (
        "they were not read: unknown, not never"
    )
