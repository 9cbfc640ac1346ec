"""How much of each quota node is used, and how much waits for it.

From pods alone: nothing is remembered, so nothing can drift. A pod's request is its peak (init steps count)
plus overhead. Resources that the tree does not name are left out. A terminating pod is charged until it has
finished or its object is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.model.pod import Pod
from fairlead.model.quota.tree import QuotaNode
from fairlead.model.quota.use import QuotaUse
from fairlead.model.resources import ALIYUN_GPU, CPU, GPU_MEMORY, MEMORY, NVIDIA_GPU, Amounts, sum_of
from fairlead.model.snapshot import ClusterSnapshot

DEFAULT_RESOURCES: Final = (CPU, MEMORY, NVIDIA_GPU, GPU_MEMORY, ALIYUN_GPU)
"""What the Quota board always has a table for, in its order."""


def quota_usage(snapshot: ClusterSnapshot) -> tuple[QuotaUse, ...]:
    """Use of every quota node, parents before children in the order written; empty without a tree."""
    if snapshot.quota is None:
        return ()
    return tuple(_gather(snapshot.quota, snapshot, frozenset(managed_resources(snapshot.quota))))


def managed_resources(root: QuotaNode) -> tuple[str, ...]:
    """Resources the tree speaks of: the defaults it names first, then others by name.

    A tree that names none manages the defaults.

    >>> managed_resources(QuotaNode("root", "root", max={"rdma/hca": 4, "memory": 1, "cpu": 1}))
    ('cpu', 'memory', 'rdma/hca')
    """
    named = {resource for node in root.walk() for resource in node.resources}
    if not named:
        return DEFAULT_RESOURCES
    return (*(resource for resource in DEFAULT_RESOURCES if resource in named), *sorted(named - set(DEFAULT_RESOURCES)))


def is_charged(pod: Pod) -> bool:
    """Whether quota counts the pod: not finished, not a static pod, not a DaemonSet's."""
    if pod.is_finished:
        return False
    owner = pod.controller
    return owner is None or owner.kind not in ("Node", "DaemonSet")


def is_waiting(pod: Pod) -> bool:
    """Whether it has no place yet. Our gate keeps a pod off every node, so having a node tells both."""
    return not pod.node


def _gather(node: QuotaNode, snapshot: ClusterSnapshot, managed: frozenset[str]) -> list[QuotaUse]:
    """The node's use, then that of everything below it."""
    if node.is_leaf:
        return [_leaf_use(node, snapshot, managed)]
    below = [_gather(child, snapshot, managed) for child in node.children]
    children = [uses[0] for uses in below]
    own = QuotaUse(
        node,
        used=sum_of(child.used for child in children),
        pending=sum_of(child.pending for child in children),
        pods=sum(child.pods for child in children),
        waiting_pods=sum(child.waiting_pods for child in children),
    )
    return [own, *(use for uses in below for use in uses)]


def _leaf_use(leaf: QuotaNode, snapshot: ClusterSnapshot, managed: frozenset[str]) -> QuotaUse:
    charged = {name: [pod for pod in snapshot.pods_in(name) if is_charged(pod)] for name in leaf.namespaces}
    running = {name: [pod for pod in pods if not is_waiting(pod)] for name, pods in charged.items()}
    waiting = [pod for pods in charged.values() for pod in pods if is_waiting(pod)]
    by_namespace = {name: _asked(pods, managed) for name, pods in running.items()}
    return QuotaUse(
        leaf,
        used=sum_of(by_namespace.values()),
        pending=_asked(waiting, managed),
        pods=sum(len(pods) for pods in running.values()),
        waiting_pods=len(waiting),
        used_by_namespace=by_namespace,
    )


def _asked(pods: Iterable[Pod], managed: frozenset[str]) -> Amounts:
    total: dict[str, int] = {}
    for pod in pods:
        for resource, amount in pod.requests.items():
            if resource in managed:
                total[resource] = total.get(resource, 0) + amount
    return total
