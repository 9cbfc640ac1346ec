"""The cluster of document 004 after nginx3: 3, 3 and 2 pods run, 2, 2 and 3 wait. Every pod has the
fields of a real one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.model.keys import LABEL_MANAGED, QUOTA_CONDITION, QUOTA_GATE
from fairlead.model.node import Condition
from fairlead.model.pod import Container, Owner, Pod, PodPhase
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.model.snapshot import ClusterSnapshot, build_snapshot

TREE = """
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: elasticquotatree, namespace: kube-system}
spec:
  root:
    name: root
    min: {cpu: 40}
    max: {cpu: 40}
    children:
    - name: root.a
      min: {cpu: 20}
      max: {cpu: 40}
      children:
      - {name: root.a.1, namespaces: [namespace1], min: {cpu: 10}, max: {cpu: 20}}
      - {name: root.a.2, namespaces: [namespace2], min: {cpu: 10}, max: {cpu: 20}}
    - name: root.b
      min: {cpu: 20}
      max: {cpu: 40}
      children:
      - {name: root.b.1, namespaces: [namespace3], min: {cpu: 10}, max: {cpu: 20}}
      - {name: root.b.2, namespaces: [namespace4], min: {cpu: 10}, max: {cpu: 20}}
"""
TAKEN_AT = 2000.0


def demo_tree() -> QuotaTree:
    leaves = [
        _node(f"root.{side}.{number}", 10_000, 20_000, spaces=(space,))
        for side, number, space in _LEAVES
    ]
    sides = [
        _node(
            f"root.{side}",
            20_000,
            40_000,
            [leaf for leaf in leaves if leaf.parent == f"root.{side}"],
        )
        for side in "ab"
    ]
    return QuotaTree(
        "elasticquotatree", "kube-system", _node("root", 40_000, 40_000, sides), generation=1
    )


_LEAVES = (
    ("a", 1, "namespace1"),
    ("a", 2, "namespace2"),
    ("b", 1, "namespace3"),
    ("b", 2, "namespace4"),
)


def _node(
    name: str,
    least: int,
    most: int,
    children: Sequence[QuotaNode] = (),
    spaces: tuple[str, ...] = (),
) -> QuotaNode:
    return QuotaNode(
        name,
        name,
        name.rpartition(".")[0],
        {"cpu": least},
        {"cpu": most},
        spaces,
        children=tuple(children),
    )


def nginx(
    number: int, admitted: int, waiting: int, *, conditions: tuple[Condition, ...] = ()
) -> list[Pod]:
    """The pods of Deployment nginx1 to nginx4 in their namespace; waiting pods come last and have
    `conditions`.
    """
    return [
        Pod(
            f"namespace{number}",
            f"nginx{number}-{place}",
            f"uid-{number}-{place}",
            labels={LABEL_MANAGED: "true"},
            owners=(Owner("ReplicaSet", f"nginx{number}-7f", f"rs-{number}", True),),
            node="node-1" if place < admitted else "",
            phase=PodPhase.RUNNING if place < admitted else PodPhase.PENDING,
            gates=() if place < admitted else (QUOTA_GATE,),
            containers=(Container("main", requests={"cpu": 5000}),),
            conditions=() if place < admitted else conditions,
            created_at=1000.0 + 100 * number + place,
        )
        for place in range(admitted + waiting)
    ]


def after_nginx3() -> list[Pod]:
    return [*nginx(1, 3, 2), *nginx(2, 3, 2), *nginx(3, 2, 3)]


def demo(pods: Iterable[Pod] | None = None, tree: QuotaTree | None = None) -> ClusterSnapshot:
    sets = [
        Workload(
            "ReplicaSet",
            "apps/v1",
            f"namespace{n}",
            f"nginx{n}-7f",
            f"rs-{n}",
            owner=f"deploy-{n}",
            owner_kind="Deployment",
            revision=1,
        )
        for n in range(1, 5)
    ]
    found = after_nginx3() if pods is None else pods
    return build_snapshot(
        taken_at=TAKEN_AT, pods=found, quota_tree=tree or demo_tree(), workloads=sets
    )


def not_admitted(reason: str, message: str) -> Condition:
    return Condition(QUOTA_CONDITION, "False", reason, message)
