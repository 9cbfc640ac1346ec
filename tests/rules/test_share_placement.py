"""Which card and which node a pod gets, and which pods are evicted for it."""

from __future__ import annotations

import msgspec
import pytest
from tests.rules.sharing import cards, container, ledger, node, placed, pod, used

from fairlead.model.pod import Pod
from fairlead.model.refusal import Refusal
from fairlead.rules.sharing.ledger import Ledger
from fairlead.rules.sharing.placement import SharePolicies
from fairlead.rules.sharing.preempt import Victims, plan_preemption

SPREAD = {"fairlead.io/gpu-placement": "spread"}
PER_CONTAINER = {"fairlead.io/gpu-split": "per-container"}


def chosen(made: Ledger, asker: Pod, name: str = "n") -> dict[str, list[tuple[int, int]]] | str:
    grants = made.reserve(asker, name)
    return grants.reason if isinstance(grants, Refusal) else cards(grants)


def three_cards() -> Ledger:
    return ledger(node(units=(15, 15, 15)), used={("n", 0): 8, ("n", 1): 11})


@pytest.mark.parametrize(
    ("asker", "expected"),
    [
        pytest.param(pod(units=4), {"main": [(1, 4)]}, id="best fit: the smallest that suffices"),
        pytest.param(
            pod(units=5), {"main": [(0, 5)]}, id="best fit: not the smallest when it is too small"
        ),
        pytest.param(
            pod(units=4, annotations=SPREAD), {"main": [(2, 4)]}, id="spread: the emptiest"
        ),
        pytest.param(
            pod(units=8, cards=2),
            {"main": [(1, 4), (0, 4)]},
            id="two cards, in the order of best fit",
        ),
        pytest.param(
            pod(units=8, cards=2, annotations=SPREAD),
            {"main": [(2, 4), (0, 4)]},
            id="two cards, spread",
        ),
        pytest.param(
            pod(containers=[container("a", 2), container("b", 3)]),
            {"a": [(0, 2)], "b": [(0, 3)]},
            id="containers on one card",
        ),
        pytest.param(
            pod(containers=[container("a", 4), container("b", 12)], annotations=PER_CONTAINER),
            {"a": [(1, 4)], "b": [(2, 12)]},
            id="containers on cards of their own, the largest first",
        ),
        pytest.param(
            pod(
                containers=[container("a", 2), container("b", 3)],
                init_containers=(container("i", 9),),
                annotations=PER_CONTAINER,
            ),
            {"a": [(2, 2)], "b": [(1, 3)], "i": [(2, 9)]},
            id="an init container goes with the first",
        ),
    ],
)
def test_choice_of_cards(asker: Pod, expected: dict[str, list[tuple[int, int]]]) -> None:
    assert chosen(three_cards(), asker) == expected


def test_ties_go_to_the_lowest_index() -> None:
    assert chosen(ledger(), pod()) == {"main": [(0, 4)]}
    assert chosen(ledger(), pod(annotations=SPREAD)) == {"main": [(0, 4)]}


def test_pod_beats_label_beats_cluster() -> None:
    spreading = Ledger(SharePolicies(gpu="spread"))
    spreading.set_node(node(units=(15, 15)))
    spreading.set_node(node("packed", labels={"cgpu": "true", "ack.node.gpu.placement": "binpack"}))
    for name in ("n", "packed"):
        spreading.set_pod(placed(pod(f"first-{name}", 4), name, {"main": [(0, 4)]}))
    assert chosen(spreading, pod("a"), "n") == {"main": [(1, 4)]}, "the cluster spreads"
    assert chosen(spreading, pod("b"), "packed") == {"main": [(0, 4)]}, "the node packs"
    assert chosen(spreading, pod("c", annotations=SPREAD), "packed") == {"main": [(1, 4)]}, (
        "the pod spreads"
    )


@pytest.mark.parametrize(
    ("asker", "scores"),
    [
        pytest.param(
            pod(units=4),
            {"empty": 0, "half": 8, "tight": 10, "full": 0, "gone": 0},
            id="best fit",
        ),
        pytest.param(
            pod(units=4, annotations=SPREAD),
            {"empty": 7, "half": 2, "tight": 0, "full": 0, "gone": 0},
            id="spread",
        ),
        pytest.param(
            pod(units=2),
            {"empty": 0, "half": 7, "tight": 8, "full": 10, "gone": 0},
            id="a smaller pod",
        ),
    ],
)
def test_scores(asker: Pod, scores: dict[str, int]) -> None:
    held = {("half", 0): 8, ("tight", 0): 11, ("full", 0): 13}
    made = ledger(*(node(name, (15,)) for name in ("empty", "half", "tight", "full")), used=held)
    assert dict(made.prioritize(asker, scores)) == scores


def test_the_worst_of_several_cards_counts() -> None:
    made = ledger(node(units=(15, 15)), used={("n", 0): 11, ("n", 1): 3})
    assert made.prioritize(pod(units=8, cards=2), ["n"]) == [("n", 1 + 9 * (15 - 8) // 15)]


def test_the_score_is_for_the_cards_that_bind_chooses() -> None:
    """On a node that spreads over its cards the pod opens an unused card, whatever the cluster
    prefers among nodes.
    """
    labels = {"cgpu": "true", "ack.node.gpu.placement": "spread"}
    made = ledger(node(labels=labels), used={("n", 0): 4})
    assert made.prioritize(pod(), ["n"]) == [("n", 0)]


# --- preemption -----------------------------------------------------------------------------------


def crowded() -> Ledger:
    """Two cards of 15 units: on card 0 `a` 8 and `b` 6, on card 1 `c` 10 (of higher priority) and
    `d` 4.
    """
    made = ledger()
    for name, card, units, priority in (
        ("a", 0, 8, 1),
        ("b", 0, 6, 0),
        ("c", 1, 10, 5),
        ("d", 1, 4, 0),
    ):
        made.set_pod(
            placed(
                pod(name, units, priority=priority, started_at=10.0), "n", {"main": [(card, units)]}
            )
        )
    return made


def test_a_reserved_pod_is_no_victim() -> None:
    """kube-scheduler does not know the pod on the node, and would reject the whole answer."""
    made = ledger(node(units=(15,)))
    made.set_pod(placed(pod("a", 5, priority=1), "n", {"main": [(0, 5)]}))
    made.reserve(pod("r", 10), "n")
    assert evicted(made, pod("new", 5, priority=9), "a", "r") == ["a"]
    assert evicted(made, pod("new", 10, priority=9), "r") is None


def evicted(made: Ledger, asker: Pod, *proposed: str, violations: int = 0) -> list[str] | None:
    plan = plan_preemption(
        made, asker, {"n": Victims(tuple(f"uid-{name}" for name in proposed), violations)}
    )
    assert all(victims.violations == violations for victims in plan.values())
    return sorted(uid.removeprefix("uid-") for uid in plan["n"].uids) if plan else None


@pytest.mark.parametrize(
    ("asker", "proposed", "victims"),
    [
        pytest.param(
            pod("new", 10, priority=9),
            ["b", "d"],
            ["a", "b"],
            id="two halves on two cards are no card",
        ),
        pytest.param(
            pod("new", 5, priority=9), ["d", "b"], ["b"], id="who does not help is spared"
        ),
        pytest.param(
            pod("new", 7, priority=9), ["d"], ["b"], id="the proposed card is too important"
        ),
        pytest.param(
            pod("new", 10, priority=3), ["b", "d"], ["a", "b"], id="only less important pods"
        ),
        pytest.param(
            pod("new", 10, priority=1), ["b", "d"], None, id="no pod that may go makes room"
        ),
        pytest.param(pod("new", 20, priority=9), ["a"], None, id="it fits no card"),
        pytest.param(
            pod("new", 1, priority=9),
            ["a"],
            ["a"],
            id="there is room: the proposal is about something else",
        ),
        pytest.param(
            pod("new", 5, priority=9),
            ["stranger", "b"],
            ["b", "stranger"],
            id="who shares no card stays a victim",
        ),
        pytest.param(pod("new", 20, cards=2, priority=9), ["a"], ["a", "b", "c"], id="two cards"),
    ],
)
def test_pods_that_have_to_go(asker: Pod, proposed: list[str], victims: list[str] | None) -> None:
    assert evicted(crowded(), asker, *proposed, violations=1) == victims


def test_of_equals_the_youngest_goes() -> None:
    made = ledger(node(units=(15,)))
    for name, started in (("old", 1.0), ("young", 9.0)):
        made.set_pod(placed(pod(name, 7, started_at=started), "n", {"main": [(0, 7)]}))
    assert evicted(made, pod("new", 5, priority=1)) == ["young"]


def test_a_pod_that_leaves_anyway_costs_nothing() -> None:
    made = crowded()
    made.set_pod(placed(pod("c", 10, priority=5), "n", {"main": [(1, 10)]}, deleted_at=3.0))
    assert evicted(made, pod("new", 10, priority=9), "a") == ["c"]


def test_preempted_room_is_not_stolen() -> None:
    made = ledger(node(units=(15,)), used={("n", 0): 9})
    waiting = pod("vip", 6, priority=9, nominated_node="n")
    made.set_pod(waiting)
    assert chosen(made, pod("sneaky", 4)) == (
        "Insufficient aliyun.com/gpu-mem on one GPU: need 4 GiB, largest free 0 GiB"
    )
    assert made.filter(pod("sneaky", 4), ["n"]).passed == []
    assert made.verdict_on("n", pod("boss", 4, priority=10)) is None, "a more important pod may"
    assert chosen(made, waiting) == {"main": [(0, 6)]}


def test_room_that_is_not_free_yet_is_promised_where_the_victims_leave() -> None:
    """Card 1 is promised while its holder still terminates; card 0 has free room."""
    made = ledger(node(units=(15, 15)), used={("n", 0): 11})
    leaving = placed(pod("victim", 13), "n", {"main": [(1, 13)]}, deleted_at=1.0)
    made.set_pod(leaving)
    made.set_pod(pod("vip", 12, priority=9, nominated_node="n"))
    assert chosen(made, pod("two", 2)) == {"main": [(0, 2)]}, "not the two units left on card 1"
    assert made.verdict_on("n", pod("four", 4)) is not None
    made.set_pod(msgspec.structs.replace(pod("vip", 12, priority=9), nominated_node=""))
    assert made.reserve(pod("later", 2), "n") != Refusal("")
    assert used(made) == [15, 13]
