"""What `quota why` answers, in the sentences of quota contract 3.4 and the states of its demo."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rules.quota.small import tree

from fairlead.errors import UserError
from fairlead.model.pod import Owner, Pod, PodPhase
from fairlead.model.quota.plan import QuotaPlan
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.snapshot import ClusterSnapshot, build_snapshot
from fairlead.rules.quota.plan import plan_quota
from fairlead.rules.quota.why import QuotaAnswer, why_quota

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
    rows = [Pod(pod.namespace, pod.name, pod.uid, owners=(Owner("ReplicaSet", "web-7", pod.owner, True),)) for pod in pods]
    return build_snapshot(taken_at=100.0, pods=[*rows, *others])


def ask(
    name: str, pods: list[QuotaPod] = AFTER_NGINX3, *, others: Iterable[Pod] = (), plan: QuotaPlan | None = None, **state: Any
) -> QuotaAnswer:
    [answer] = ask_all(name, pods, others=others, plan=plan, **state)
    return answer


def ask_all(
    name: str, pods: list[QuotaPod] = AFTER_NGINX3, *, others: Iterable[Pod] = (), plan: QuotaPlan | None = None, **state: Any
) -> list[QuotaAnswer]:
    whole = QuotaState(DEMO, tuple(pods), now=100.0, **state)
    namespace, _, pod = name.partition("/")
    return why_quota(seen(pods, others), whole, plan or plan_quota(whole), namespace, pod)


def test_a_waiting_pod_of_the_demo_is_told_who_borrows() -> None:
    answer = ask("b1/web-2")

    assert answer.reason == "WaitingForIdleQuota"
    assert answer.leaf == "b1"
    assert answer.sentence == (
        "cpu asks 5; root 40/40 in use; b1 uses 10 of guaranteed 10, so it may only borrow idle quota; biggest borrowers: a1 +5, a2 +5"
    )
    assert [(each.leaf, each.over) for each in answer.waiting[0].borrowers] == [("a1", 5000), ("a2", 5000)]
    assert [(each.node, each.used, each.max) for each in answer.waiting[0].blocked] == [("root", 40_000, 40_000)]
    assert answer.waiting[0].position == 1


def test_positions_count_within_the_leaf() -> None:
    assert [ask(f"b1/web-{number}").waiting[0].position for number in (2, 3, 4)] == [1, 2, 3]


def test_what_the_condition_says_stands_if_it_is_for_the_same_reason() -> None:
    said = replace(AFTER_NGINX3[-1], said_reason="WaitingForIdleQuota", said="as the controller wrote it")
    other = replace(AFTER_NGINX3[-1], said_reason="OverMax", said="as it was before")

    assert ask("b1/web-4", [*AFTER_NGINX3[:-1], said]).sentence == "as the controller wrote it"
    assert ask("b1/web-4", [*AFTER_NGINX3[:-1], other]).sentence == ask("b1/web-4").sentence


def test_a_job_is_told_how_many_of_its_pods_wait() -> None:
    answer = ask("b1/web")

    assert answer.kind == "Deployment"
    assert (answer.pods, answer.admitted, len(answer.waiting)) == (5, 2, 3)
    assert answer.sentence.startswith("3 of 5 pods wait: cpu asks 5; root 40/40 in use")


def test_a_job_that_we_suspended_waits_without_pods() -> None:
    job = Workload("Job", "batch/v1", "b1", "train", "uid-train", can_suspend=True, is_suspended=True, suspended_for="a1/x", pods=4)
    whole = plan_quota(QuotaState(DEMO, tuple(AFTER_NGINX3), now=100.0))
    row = replace(whole.waiting[0], unit="b1/train", leaf="b1", pods=(), workload=job)

    answer = ask("b1/train", plan=replace(whole, waiting=(row,)), workloads={"uid-train": job})

    assert answer.sentence == f"4 of 4 pods wait: {row.message}"


def test_an_admitted_pod_is_told_what_its_leaf_borrows() -> None:
    """As it is now: the condition tells how it was when it was admitted."""
    then = replace(AFTER_NGINX3[0], said_reason="Admitted", said="a1 uses 5 of guaranteed 10 cpu, borrows 0")
    answer = ask("a1/web-0", [then, *AFTER_NGINX3[1:]])

    assert answer.reason == "Admitted"
    assert answer.sentence == "a1 uses 15 of guaranteed 10 cpu, borrows 5"
    assert not answer.waiting


def test_who_has_room_goes_first_or_has_to_go_is_told() -> None:
    pods = [*deployment("a1", 4, 0), *deployment("a2", 4, 0), *deployment("b1", 0, 1)]
    claimed = ask("b1/web-0", pods)
    assert claimed.reason == "WaitingForEvictions"
    victim = next(each for each in plan_quota(QuotaState(DEMO, tuple(pods), now=100.0)).evict)
    told = ask(victim.pod.key, pods)
    assert (told.reason, "b1/web-0" in told.sentence) == ("Reclaimed", True)

    lone = deployment("b1", 0, 1)
    assert ask("b1/web-0", lone).reason == "HasRoom"
    assert ask("b1/web-0", [replace(lone[0], is_admitted=True, is_stopping=True)]).reason == "Stopping"


def test_who_is_not_counted() -> None:
    stranger = Pod("elsewhere", "p", "s")
    daemon = Pod("a1", "agent-x", "d", owners=(Owner("DaemonSet", "agent", "ds", True, "apps/v1"),))
    ended = Pod("a1", "done", "e", phase=PodPhase.SUCCEEDED)

    assert "elsewhere is on no leaf of the quota tree" in ask("elsewhere/p", others=[stranger]).sentence
    assert ask("a1/agent-x", others=[daemon]).sentence == "it is a pod of DaemonSet agent, which quota does not count"
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
def test_a_name_that_is_not_there_is_told_with_those_that_are(name: str, hint: str) -> None:
    with pytest.raises(UserError, match="there is no pod and no job") as caught:
        ask(name)
    assert caught.value.hint == hint
