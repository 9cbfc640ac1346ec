"""How much of each quota node is used, and how much waits for it: `node_uses` of a cluster as it is.

Boards and metrics show it. It needs no quota controller: without one no pod has the gate, so every unfinished
pod counts as used, bound or not.
"""

from __future__ import annotations

from fairlead.model.keys import LABEL_USER, QUOTA_CONDITION, QUOTA_GATE
from fairlead.model.pod import Pod
from fairlead.model.quota.plan import Reason
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode
from fairlead.model.quota.use import QuotaUse
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.quota.node_use import node_uses


def quota_usage(snapshot: ClusterSnapshot) -> tuple[QuotaUse, ...]:
    """Use of every quota node, parents before children in the order written; empty without a tree."""
    return usage_of(quota_state(snapshot, snapshot.taken_at)) if snapshot.quota else ()


def usage_of(state: QuotaState) -> tuple[QuotaUse, ...]:
    """The same of a state."""
    return tuple(QuotaUse(node, use) for node, use in zip(state.tree.walk(), node_uses(state), strict=True))


def quota_state(snapshot: ClusterSnapshot, now: float) -> QuotaState:
    root = snapshot.quota or QuotaNode("root", "root")
    pods = [_quota_pod(pod) for leaf in root.leaves() for name in leaf.namespaces for pod in snapshot.pods_in(name) if is_charged(pod)]
    return QuotaState(root, tuple(pods), now=now)


def is_charged(pod: Pod) -> bool:
    """Whether quota counts the pod: not finished, not a static pod, not a DaemonSet's."""
    if pod.is_finished:
        return False
    owner = pod.controller
    return owner is None or owner.kind not in ("Node", "DaemonSet")


def _quota_pod(pod: Pod) -> QuotaPod:
    said = next((each for each in pod.conditions if each.type == QUOTA_CONDITION), None)
    is_claimant = said is not None and said.reason == Reason.WAITING_FOR_EVICTIONS
    return QuotaPod(
        pod.namespace,
        pod.name,
        pod.uid,
        pod.requests,
        is_admitted=QUOTA_GATE not in pod.gates,
        is_stopping=pod.deleted_at is not None,
        claim_since=said.at if said is not None and is_claimant else None,
        owner=pod.controller.uid if pod.controller else "",
        user=pod.labels.get(LABEL_USER, ""),
        stopping_at=pod.deleted_at,
        said_reason=said.reason if said is not None and QUOTA_GATE in pod.gates else "",
    )
