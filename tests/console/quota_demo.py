"""The 40-core demo of document 004 as a cluster: its tree, and pods of 5 cores."""

from __future__ import annotations

from msgspec.structs import replace
from tests.console.clusters import EPOCH, GATED, cluster, cpu_node, pod

from fairlead.console.boards.board_state import BoardState
from fairlead.model.pod import Owner, Pod
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.model.snapshot import ClusterSnapshot


def leaf(name: str, parent: str, namespace: str) -> QuotaNode:
    return QuotaNode(name, name, parent, {"cpu": 10_000}, {"cpu": 20_000}, (namespace,))


def demo() -> QuotaNode:
    """The tree of document 004: 40 cores, 20 each for a and b, with two leaves of min 10 and max 20
    each.
    """
    a = (leaf("root.a.1", "root.a", "ns1"), leaf("root.a.2", "root.a", "ns2"))
    b = (leaf("root.b.1", "root.b", "ns3"), leaf("root.b.2", "root.b", "ns4"))
    half = {"cpu": 20_000}
    inner = tuple(
        QuotaNode(name, name, "root", half, {"cpu": 40_000}, children=below)
        for name, below in (("root.a", a), ("root.b", b))
    )
    return QuotaNode("root", "root", "", {"cpu": 40_000}, {"cpu": 40_000}, children=inner)


def five(namespace: str, number: int, *, waits: bool = False) -> Pod:
    made = pod(
        f"web-{namespace}-{number}",
        "" if waits else "gpu-1",
        {"cpu": 5000},
        namespace=namespace,
        gates=GATED if waits else (),
    )
    return replace(
        made,
        owners=(Owner("ReplicaSet", "web", f"uid-{namespace}", True),),
        created_at=EPOCH - 100 + number,
    )


def full() -> BoardState:
    """Both leaves of a borrow everything that b does not use: 4 pods run in each, and one more
    waits in each.
    """
    pods = [
        five(namespace, number, waits=number == 4)
        for namespace in ("ns1", "ns2")
        for number in range(5)
    ]
    return BoardState(cluster(pods=pods, quota=demo()), EPOCH)


def poor() -> QuotaNode:
    """The same tree, but b.1 has no guarantee."""
    a, b = demo().children
    first = replace(b.children[0], min={})
    return replace(demo(), children=(a, replace(b, children=(first, b.children[1]))))


def crowded(root: QuotaNode) -> ClusterSnapshot:
    """a.1 and a.2 use all 40 cores; two pods wait in b.1, and one of the user bob in a.1."""
    pods = [five(namespace, number) for namespace in ("ns1", "ns2") for number in range(4)]
    pods += [five("ns3", number, waits=True) for number in range(2)]
    bob = five("ns1", 4, waits=True)
    pods.append(replace(bob, labels={**bob.labels, "arena.kubeflow.org/console-user": "bob"}))
    tree = QuotaTree("elasticquotatree", "kube-system", root)
    return replace(cluster([cpu_node()], pods, quota=root), quota_tree=tree)
