"""Use of quota: admitted pods count until they are gone, waiting pods count separately, uncounted
pods nowhere, and inner nodes are the sum of their leaves.
"""

from __future__ import annotations

from tests.rules.builders import pod, snapshot

from fairlead.model.node import Condition
from fairlead.model.pod import Container, Owner, Pod
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode, Violation
from fairlead.rules.quota.managed import managed_resources
from fairlead.rules.quota.usage import lacks_of, quota_usage

CPU = {"cpu": 1000}
LEAF_1 = QuotaNode(
    "root.a.1", "root.a.1", "root.a", min=CPU, max={"cpu": 4000}, namespaces=("ns1", "ns2")
)
LEAF_2 = QuotaNode("root.b", "root.b", "root", namespaces=("ns3",))
A = QuotaNode("root.a", "root.a", "root", min=CPU, children=(LEAF_1,))
ROOT = QuotaNode("root", "root", min={"cpu": 9000}, max={"cpu": 9000}, children=(A, LEAF_2))


def asks(name: str, cpu: int, namespace: str = "ns1", node: str = "n", **more: object) -> Pod:
    return pod(
        name,
        node,
        namespace=namespace,
        containers=(Container("c", requests={"cpu": cpu, "memory": 5}),),
        **more,
    )  # type: ignore[arg-type]


def used(*pods: Pod) -> dict[str, tuple[int, int]]:
    return {
        use.node.name: (use.own.used.get("cpu", 0), use.waits("cpu"))
        for use in quota_usage(snapshot([], pods, quota=ROOT))
    }


def gated(name: str, cpu: int, namespace: str = "ns1", **more: object) -> Pod:
    return asks(
        name, cpu, namespace, node="", phase="Pending", gates=("fairlead.io/quota",), **more
    )


def test_used_and_pending_go_up_the_tree() -> None:
    pods = [
        asks("a", 1000),
        asks("b", 500, "ns2", deleted_at=1.0),
        gated("c", 2000),
        asks("d", 100, "ns3"),
    ]
    assert used(*pods) == {
        "root": (1600, 2000),
        "root.a": (1500, 2000),
        "root.a.1": (1500, 2000),
        "root.b": (100, 0),
    }


def test_a_gated_pod_waits_and_a_finished_one_costs_nothing() -> None:
    assert used(
        gated("a", 1000), asks("b", 7000, phase="Succeeded"), asks("c", 7000, phase="Failed")
    )["root"] == (0, 1000)


def test_an_admitted_pod_is_used_before_it_has_a_node() -> None:
    assert used(asks("a", 1000, node="", phase="Pending"))["root"] == (1000, 0)


def test_another_gate_than_fairleads_does_not_wait_for_quota() -> None:
    assert used(asks("a", 1000, node="", phase="Pending", gates=("example.com/other",)))[
        "root"
    ] == (1000, 0)


def test_a_pod_that_does_not_stop_is_lost_five_minutes_after_its_end() -> None:
    stuck = asks("a", 1000, deleted_at=snapshot([], []).taken_at - 300)
    slow = asks("b", 500, deleted_at=snapshot([], []).taken_at - 299)
    own = quota_usage(snapshot([], [stuck, slow], quota=ROOT))[0].own
    assert (own.used, own.lost, own.pods) == ({"cpu": 500}, {"cpu": 1000}, 1)


def test_what_is_guaranteed_and_borrowed_follows_from_the_nodes_own_min() -> None:
    own = {
        use.node.name: use.own
        for use in quota_usage(snapshot([], [asks("a", 1500), asks("d", 100, "ns3")], quota=ROOT))
    }
    assert {name: (dict(each.guaranteed), dict(each.borrowed)) for name, each in own.items()} == {
        "root": ({"cpu": 1600}, {}),
        "root.a": ({"cpu": 1000}, {"cpu": 500}),
        "root.a.1": ({"cpu": 1000}, {"cpu": 500}),
        "root.b": ({}, {"cpu": 100}),
    }


def test_a_claimant_has_it_in_its_condition_and_others_have_their_reason() -> None:
    claimant = gated(
        "a",
        1000,
        conditions=(
            Condition("fairlead.io/QuotaAdmitted", "False", "WaitingForEvictions", at=5.0),
        ),
    )
    idle = gated(
        "b",
        700,
        conditions=(
            Condition("fairlead.io/QuotaAdmitted", "False", "WaitingForIdleQuota", at=5.0),
        ),
    )
    own = quota_usage(snapshot([], [claimant, idle, gated("c", 1)], quota=ROOT))[2].own
    assert (own.claimed, own.request, own.waiting_pods) == ({"cpu": 1000}, {"cpu": 1701}, 3)
    assert own.waiting_by_reason == {"WaitingForEvictions": 1, "WaitingForIdleQuota": 1, "": 1}


def test_use_per_user_adds_up_to_the_leafs() -> None:
    pods = [
        asks("a", 1000, labels={"arena.kubeflow.org/console-user": "bob"}),
        asks("b", 300),
        asks("c", 200, "ns2"),
    ]
    own = quota_usage(snapshot([], pods, quota=ROOT))[2].own
    assert own.used_by_user == {"bob": {"cpu": 1000}, "": {"cpu": 500}}


def test_strangers_static_pods_and_daemons_are_not_counted() -> None:
    static = asks(
        "static",
        900,
        owners=(Owner("Node", "n", "u", True, "v1"),),
        annotations={"kubernetes.io/config.mirror": "x"},
    )
    daemon = asks("daemon", 900, owners=(Owner("DaemonSet", "d", "u", True, "apps/v1"),))
    assert used(asks("stranger", 900, "other"), static, daemon)["root"] == (0, 0)


def test_a_pods_request_is_its_peak_and_overhead() -> None:
    peak = pod(
        "p",
        "n",
        namespace="ns1",
        containers=(Container("c", requests={"cpu": 500}),),
        init_containers=(
            Container("side", requests={"cpu": 200}, restartable=True),
            Container("init", requests={"cpu": 900}),
        ),
        overhead={"cpu": 50},
    )
    assert used(peak)["root.a.1"] == (1150, 0)


def test_resources_the_tree_does_not_name_are_nobodys_business() -> None:
    assert quota_usage(snapshot([], [asks("a", 1000)], quota=ROOT))[0].own.used == {"cpu": 1000}
    assert managed_resources(ROOT) == ("cpu",)
    assert managed_resources(QuotaNode("root", "root")) == (
        "cpu",
        "memory",
        "nvidia.com/gpu",
        "aliyun.com/gpu-mem",
        "aliyun.com/gpu",
    )


def test_each_namespace_of_a_leaf_is_there_also_without_pods() -> None:
    use = next(
        use
        for use in quota_usage(snapshot([], [asks("a", 1000, "ns2")], quota=ROOT))
        if use.node is LEAF_1
    )
    assert {name: dict(amounts) for name, amounts in use.own.used_by_namespace.items()} == {
        "ns1": {},
        "ns2": {"cpu": 1000},
    }
    assert (use.own.pods, use.own.waiting_pods) == (1, 0)


def test_without_a_tree_there_is_no_use() -> None:
    assert quota_usage(snapshot([], [asks("a", 1000)])) == ()


GPU = "nvidia.com/gpu"
LENDER = QuotaNode("root.a", "root.a", "root", min={"cpu": 50_000, GPU: 6}, namespaces=("lender",))
BORROWER = QuotaNode(
    "root.b", "root.b", "root", min={"cpu": 50_000, GPU: 2}, max={GPU: 7}, namespaces=("borrower",)
)
EIGHT = QuotaNode(
    "root",
    "root",
    min={"cpu": 100_000, GPU: 8},
    max={"cpu": 100_000, GPU: 8},
    children=(LENDER, BORROWER),
)


def waits(name: str, gpus: int, namespace: str = "lender", **more: object) -> QuotaPod:
    return QuotaPod(namespace, name, name, {"cpu": 1000, GPU: gpus}, **more)  # type: ignore[arg-type]


def runs(name: str, gpus: int, namespace: str = "borrower") -> QuotaPod:
    return waits(name, gpus, namespace, is_admitted=True)


def stops(name: str, gpus: int) -> QuotaPod:
    return waits(name, gpus, "borrower", is_admitted=True, is_stopping=True)


def lacks(*pods: QuotaPod, **more: object) -> dict[str, dict[str, tuple[int, int]]]:
    found = lacks_of(QuotaState(EIGHT, pods, **more))  # type: ignore[arg-type]
    return {
        leaf: {name: (lack.units, lack.smallest) for name, lack in of_leaf.items()}
        for leaf, of_leaf in found.items()
    }


class TestWhatIsWaitedFor:
    def test_the_resource_that_has_no_room_and_no_other_that_is_asked_for_too(self) -> None:
        assert lacks(runs("a", 7), waits("b", 2), waits("c", 4)) == {"root.a": {GPU: (2, 2)}}

    def test_nothing_where_there_is_room_or_no_pod_waits(self) -> None:
        assert lacks(runs("a", 4), waits("b", 4)) == {}
        assert lacks(runs("a", 7)) == {}

    def test_what_is_stopping_has_not_given_back_yet(self) -> None:
        assert lacks(stops("a", 7), waits("b", 4)) == {"root.a": {GPU: (1, 4)}}

    def test_the_leafs_own_max_as_well_as_what_is_above(self) -> None:
        assert lacks(runs("a", 7), waits("b", 1, "borrower")) == {"root.b": {GPU: (1, 1)}}

    def test_as_much_as_the_cluster_has(self) -> None:
        assert lacks(runs("a", 4), waits("b", 3)) == {}
        assert lacks(runs("a", 4), waits("b", 3), capacity={GPU: 6}) == {"root.a": {GPU: (1, 3)}}

    def test_a_gang_is_one_unit_and_asks_for_all_of_it(self) -> None:
        pair = (waits(name, 2, gang="g", gang_size=2) for name in ("b", "c"))
        assert lacks(runs("a", 7), *pair) == {"root.a": {GPU: (1, 4)}}

    def test_a_suspended_job_waits_without_pods(self) -> None:
        job = Workload(
            "MPIJob",
            "kubeflow.org/v1",
            "lender",
            "j",
            "j",
            is_suspended=True,
            suspended_for="x",
            request={GPU: 3},
        )
        assert lacks(runs("a", 7), workloads={"j": job}) == {"root.a": {GPU: (1, 3)}}

    def test_what_others_were_promised_counts_as_used(self) -> None:
        claimant = waits("b", 2, "borrower", claim_since=1.0)
        assert lacks(runs("a", 4), claimant, waits("c", 3)) == {"root.a": {GPU: (1, 3)}}

    def test_pods_that_room_in_the_tree_would_not_help_are_left_out(self) -> None:
        for reason in (
            "UserCap",
            "NoFitOnNodes",
            "NonPreemptibleOverMin",
            "GangIncomplete",
            "NeverFits",
        ):
            assert lacks(runs("a", 7), waits("b", 2, condition_reason=reason)) == {}, reason
        assert lacks(runs("a", 7), waits("b", 2, condition_reason="PDBBlocked")) == {
            "root.a": {GPU: (1, 2)}
        }
        assert lacks(waits("b", 9)) == {}, "more than the tree has"

    def test_nothing_in_a_broken_tree(self) -> None:
        assert (
            lacks(
                runs("a", 7),
                waits("b", 2),
                violations=(Violation("root", "BadShape", "broken", stops=True),),
            )
            == {}
        )
