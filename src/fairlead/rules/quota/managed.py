"""Which resources a quota tree manages, which pods it charges, and how much of a leaf one user may
have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from fairlead.model.installation import NODE_NAMESPACE, SYSTEM_NAMESPACE, namespaces_known_by
from fairlead.model.keys import ANNOTATION_MIRROR, LABEL_MANAGED, QUOTA_GATE
from fairlead.model.people.rows import UserGroup
from fairlead.model.pod import Pod
from fairlead.model.quota.rows import Namespace
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.model.resources import ALIYUN_GPU, CPU, GPU_MEMORY, MEMORY, NVIDIA_GPU, Amounts
from fairlead.settings import USERS_NAMESPACE

KUBERNETES_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease")
PROTECTED: Final = (
    *KUBERNETES_NAMESPACES,
    SYSTEM_NAMESPACE,
    NODE_NAMESPACE,
    USERS_NAMESPACE,
)
"""Namespaces that may be on no leaf. If a tree lists one nevertheless, quota ignores its pods.

Of an installation in other namespaces the quota controller and the webhook know these, too, by
their flags (`QuotaMachine`, `validate`); boards, metrics and commands by `own_namespaces`.
"""
DEFAULT_RESOURCES: Final = (CPU, MEMORY, NVIDIA_GPU, GPU_MEMORY, ALIYUN_GPU)
"""Resources for which the Quota board always has a table, in its order."""
_DAEMON_SETS: Final = ("apps/v1", "DaemonSet")
_NODES: Final = ("v1", "Node")


def managed_resources(root: QuotaNode) -> tuple[str, ...]:
    """Resources that the tree names: the defaults first, then others by name.

    A tree that names none manages the defaults.

    >>> managed_resources(QuotaNode("root", "root", max={"rdma/hca": 4, "memory": 1, "cpu": 1}))
    ('cpu', 'memory', 'rdma/hca')
    """
    named = {resource for node in root.walk() for resource in node.resources}
    if not named:
        return DEFAULT_RESOURCES
    return (
        *(resource for resource in DEFAULT_RESOURCES if resource in named),
        *sorted(named - set(DEFAULT_RESOURCES)),
    )


def own_namespaces(spaces: Iterable[Namespace]) -> frozenset[str]:
    """The namespaces of an installation of Fairlead, by their label."""
    known = (namespaces_known_by(each.name, each.labels, each.annotations) for each in spaces)
    return frozenset().union(*known)


def is_exempt(pod: Pod) -> bool:
    """A kubelet's static pod, or one of a DaemonSet or protected namespace, that had no gate.

    Admission marks every other pod, whatever owner it names
    (docs/spec/quota.md#pods-that-are-counted). Of an older pod the writer is unknown. The garbage
    collector deletes a pod whose DaemonSet is absent. The Node of a mirror pod exists: only a
    kubelet's mirror counts as its pod, and a kubelet runs no mirror that another writer made.
    """
    if LABEL_MANAGED in pod.labels or QUOTA_GATE in pod.gates:
        return False
    if pod.namespace in PROTECTED:
        return True
    owner = pod.controller
    if owner is None or not owner.controller:
        return False
    kind = (owner.api_version, owner.kind)
    return kind == _DAEMON_SETS or (kind == _NODES and ANNOTATION_MIRROR in pod.annotations)


def is_charged(pod: Pod) -> bool:
    """Whether quota counts the pod: not finished, and not exempt."""
    return not pod.is_finished and not is_exempt(pod)


def caps_of(groups: Iterable[UserGroup]) -> dict[str, Mapping[str, Amounts]]:
    """By leaf and user. Of two groups that name one leaf only the caps of that count which has it.

    >>> groups = UserGroup("late", leaf="a", caps={"bob": {"cpu": 9}}, created_at=2.0), UserGroup(
    ...     "team", leaf="a", caps={"bob": {"cpu": 1}}, created_at=1.0
    ... )
    >>> caps_of(groups)
    {'a': {'bob': {'cpu': 1}}}
    """
    found: dict[str, Mapping[str, Amounts]] = {}
    for group in sorted(groups, key=_rank):
        if group.leaf and not group.faults:
            found.setdefault(group.leaf, group.caps)
    return {leaf: caps for leaf, caps in found.items() if caps}


def with_user_caps_of(tree: QuotaTree, present: QuotaTree | None) -> QuotaTree:
    """A tree of a file with the caps that the cluster's tree has."""
    if tree.root is None or present is None or present.root is None:
        return tree
    caps = {leaf.name: leaf.user_caps for leaf in present.root.leaves() if leaf.user_caps}
    return replace(tree, root=tree.root.with_user_caps(caps)) if caps else tree


def _rank(group: UserGroup) -> tuple[bool, float, str]:
    """As the people controller gives leaves to groups (docs/spec/people.md#groups-and-leaves)."""
    return group.status.leaf != group.leaf, group.created_at, group.name
