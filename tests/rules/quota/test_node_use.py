"""What each quota node uses, lends and promises: sums worked out by hand."""

from __future__ import annotations

from fairlead.model.quota.plan import QuotaClaim, QuotaNodeUse
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode
from fairlead.rules.quota.node_use import node_uses, promised_by_leaf

A1 = QuotaNode("a.1", "root.a.1", "a", {"cpu": 5}, namespaces=("n1", "n2"))
A2 = QuotaNode("a.2", "root.a.2", "a", {"cpu": 10}, namespaces=("n3",))
A = QuotaNode("a", "root.a", "root", {"cpu": 20}, children=(A1, A2))
ROOT = QuotaNode("root", "root", "", {"cpu": 40}, {"cpu": 40}, children=(A,))


def pod(
    name: str, cpu: int, namespace: str = "n1", *, runs: bool = True, **more: object
) -> QuotaPod:
    return QuotaPod(namespace, name, request={"cpu": cpu, "memory": 7}, is_admitted=runs, **more)  # type: ignore[arg-type]


def uses(*pods: QuotaPod, **more: object) -> dict[str, QuotaNodeUse]:
    return {use.name: use for use in node_uses(QuotaState(ROOT, pods, now=1000.0), **more)}  # type: ignore[arg-type]


def test_guaranteed_and_borrowed_are_the_nodes_own_and_no_sums() -> None:
    found = uses(pod("x", 8), pod("y", 4, "n3"))
    assert {name: (use.used, use.guaranteed, use.borrowed) for name, use in found.items()} == {
        "root": ({"cpu": 12}, {"cpu": 12}, {}),
        "a": ({"cpu": 12}, {"cpu": 12}, {}),
        "a.1": ({"cpu": 8}, {"cpu": 5}, {"cpu": 3}),
        "a.2": ({"cpu": 4}, {"cpu": 4}, {}),
    }


def test_stopping_is_used_until_it_is_lost() -> None:
    found = uses(
        pod("slow", 2, is_stopping=True, stopping_at=701.0),
        pod("stuck", 3, is_stopping=True, stopping_at=700.0),
    )
    for name in ("a.1", "a", "root"):
        assert (found[name].used, found[name].lost) == ({"cpu": 2}, {"cpu": 3})


def test_a_plan_hands_in_its_claims_and_units_else_conditions_contain_them() -> None:
    claimant = pod("c", 5, runs=False, claim_since=9.0)
    assert uses(claimant)["a"].claimed == {"cpu": 5}
    assert uses(claimant, promised={})["a"].claimed == {}
    claims = [QuotaClaim("n3/z", "a.2", {"cpu": 6, "memory": 7})]
    reported = uses(claimant, promised=promised_by_leaf(claims, {}), units={"a.1": 1})
    assert {name: (use.claimed, use.waiting_units) for name, use in reported.items()} == {
        "root": ({"cpu": 6}, 1),
        "a": ({"cpu": 6}, 1),
        "a.1": ({}, 1),
        "a.2": ({"cpu": 6}, 0),
    }


def test_request_is_used_and_waiting_and_non_preemptible_pods_are_distinguished() -> None:
    firm = {"is_preemptible": False}
    found = uses(
        pod("r", 1), pod("f", 2, **firm), pod("w", 4, runs=False), pod("g", 8, runs=False, **firm)
    )
    use = found["a.1"]
    assert (use.used, use.request, use.firm_used, use.firm_request) == (
        {"cpu": 3},
        {"cpu": 15},
        {"cpu": 2},
        {"cpu": 10},
    )
    assert (use.pods, use.waiting_pods) == (2, 2)


def test_namespaces_and_users_of_a_leaf_add_up_to_it() -> None:
    use = uses(pod("x", 1, user="bob"), pod("y", 2, "n2"))["a.1"]
    assert use.used_by_namespace == {"n1": {"cpu": 1}, "n2": {"cpu": 2}}
    assert use.used_by_user == {"bob": {"cpu": 1}, "": {"cpu": 2}}
    assert uses()["a"].used_by_namespace == {}


def test_a_tree_with_a_name_twice_counts_no_pod_twice() -> None:
    twin = QuotaNode("a.1", "root.a.1", "a", {"cpu": 1}, namespaces=("n9",))
    root = QuotaNode("root", "root", "", {"cpu": 40}, {"cpu": 40}, children=(A1, twin))
    found = node_uses(QuotaState(root, (pod("x", 3), pod("y", 4, "n9"))))
    assert [use.used.get("cpu") for use in found] == [7, 3, 4]
