"""Whether a job that does not exist yet would start now.

Quota counts the pods as if they existed since this moment: the next plan admits all of them, or
gives the reason. Where quota does not count the namespace, the nodes alone decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.keys import QUOTA_GATE
from fairlead.model.node import Node
from fairlead.model.pod import Owner, Pod
from fairlead.model.quota.plan import QuotaWaiting, Reason
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.resources import GPU_MEMORY, PODS
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.nodes.choice import may_use
from fairlead.rules.nodes.room import NodeRooms
from fairlead.rules.nodes.status import is_ready
from fairlead.rules.quota.account import account_of
from fairlead.rules.quota.plan import plan_account
from fairlead.rules.quota.sight import PodContext, quota_pod, user_caps


class StartState(StrEnum):
    """`NEVER`: not while the quota tree and the nodes are as they are now."""

    STARTS = "starts"
    WAITS = "waits"
    NEVER = "never"
    UNKNOWN = "unknown"


class WouldStart(Struct, frozen=True):
    """`waiting`: why quota does not admit it; None = quota does, or does not count it. `pod`: one
    that no node takes; None = each has a node. `seated`: how many of its `pods` have room on nodes
    together, where quota does not count them.
    """

    state: StartState
    pods: int
    waiting: QuotaWaiting | None = None
    pod: Pod | None = None
    seated: int = 0


def would_start(
    snapshot: ClusterSnapshot,
    rooms: NodeRooms,
    quota: QuotaState | None,
    job: Workload,
    pods: Sequence[Pod],
) -> WouldStart:
    """`snapshot`, `rooms`: of the whole cluster's nodes. `quota`: None = there is no tree. `pods`:
    of the job, without owner and gate.
    """
    if quota is not None and any(job.namespace in leaf.namespaces for leaf in quota.tree.leaves()):
        return _by_quota(quota, job, pods)
    return _by_nodes(snapshot.nodes, rooms, pods)


def _by_quota(quota: QuotaState, job: Workload, pods: Sequence[Pod]) -> WouldStart:
    new = _counted(quota, job, pods)
    everyone = (*quota.pods, *new)
    state = replace(
        quota,
        pods=everyone,
        workloads={**quota.workloads, job.uid: job},
        user_caps=user_caps(quota.tree, everyone),
    )
    planned = plan_account(account_of(state), state.now)
    own = {pod.uid for pod in new}
    admitted = own & {each.pod.uid for each in planned.admit}
    if admitted == own:
        return WouldStart(StartState.STARTS, len(pods))
    row = next(
        (each for each in planned.waiting() if any(pod.uid in own for pod in each.pods)), None
    )
    if row is None:
        return WouldStart(StartState.UNKNOWN, len(pods))
    never = row.reason is Reason.NEVER_FITS
    return WouldStart(StartState.NEVER if never else StartState.WAITS, len(pods), row)


def _counted(quota: QuotaState, job: Workload, pods: Sequence[Pod]) -> list[QuotaPod]:
    around = PodContext(quota.settings)
    around.put(replace(job, is_suspended=False))
    owner = Owner(job.kind, job.name, job.uid, controller=True, api_version=job.api_version)
    made = (
        replace(pod, owners=(owner,), gates=(QUOTA_GATE,), created_at=quota.now) for pod in pods
    )
    return [found for pod in made if (found := quota_pod(pod, around)) is not None]


def _by_nodes(nodes: Sequence[Node], rooms: NodeRooms, pods: Sequence[Pod]) -> WouldStart:
    for pod in pods:
        why = rooms.why(pod)
        if why is not None:
            never = why.kind in ("never", "absent")
            return WouldStart(StartState.NEVER if never else StartState.WAITS, len(pods), pod=pod)
    if any(pod.requests.get(GPU_MEMORY) for pod in pods):
        return WouldStart(StartState.UNKNOWN, len(pods))
    seated = _seated(nodes, rooms, pods)
    state = StartState.STARTS if seated == len(pods) else StartState.WAITS
    return WouldStart(state, len(pods), seated=seated)


def _seated(nodes: Sequence[Node], rooms: NodeRooms, pods: Sequence[Pod]) -> int:
    """How many of the pods have room together, the largest first."""
    left = {node.name: dict(rooms.left(node)) for node in nodes if is_ready(node)}
    seated = 0
    for pod in sorted(pods, key=lambda pod: -sum(pod.requests.values())):
        asked = {**pod.requests, PODS: 1}
        found = next(
            (
                node.name
                for node in nodes
                if node.name in left
                and may_use(pod.node_choice, node)
                and _fits(asked, left[node.name], node)
            ),
            None,
        )
        if found is None:
            continue
        seated += 1
        for name, amount in asked.items():
            left[found][name] = left[found].get(name, 0) - amount
    return seated


def _fits(asked: Mapping[str, int], left: Mapping[str, int], node: Node) -> bool:
    return all(
        left.get(name, 0) >= amount
        for name, amount in asked.items()
        if amount and (name != PODS or PODS in node.allocatable)
    )
