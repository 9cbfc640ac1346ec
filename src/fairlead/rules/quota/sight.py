"""The state that a quota plan reads, made from a cluster.

It has the pods that quota counts, what each requests, and the owner, user and gang of each.

A pod that was created with the gate has the label `fairlead.io/managed`. That label, set by
admission, shows whether a pod is exempt; owners that a pod names are not trusted for this.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final

from fairlead.model.keys import (
    ANNOTATION_SURGE,
    GANG_KOORDINATOR,
    GANG_KOORDINATOR_SIZE,
    GANG_VOLCANO,
    LABEL_GANG,
    LABEL_OLD_GANG,
    LABEL_POD_GROUP,
    LABEL_POD_GROUP_SIZE,
    LABEL_USER,
    QUOTA_CONDITION,
    QUOTA_GATE,
)
from fairlead.model.moment import Moment
from fairlead.model.node import Condition
from fairlead.model.pod import Pod, PodPhase
from fairlead.model.quota.plan import Reason
from fairlead.model.quota.rows import Budget, Workload, preemptible
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode, QuotaSettings
from fairlead.model.quota.written import MAKERS
from fairlead.model.resources import Amounts
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.need import asks_share, gpu_need
from fairlead.rules.nodes.choice import holds_for
from fairlead.rules.quota.jobs.removal import removal_turn, surplus_of
from fairlead.rules.quota.managed import PROTECTED, is_exempt, own_namespaces
from fairlead.rules.quota.room import node_rooms
from fairlead.rules.quota.validate import validate

_RUNNING: Final = PodPhase.RUNNING
_PENDING: Final = PodPhase.PENDING
_CLAIMS: Final = Reason.WAITING_FOR_EVICTIONS.value
_SUSPENDED: Final = ("MPIJob", "PyTorchJob", "TFJob", "RayJob", "RayCluster")
"""Training jobs are suspended: a job that loses a pod to an eviction may fail for good."""
_GROUP: Final = "PodGroup"
_VOLCANO_GROUP: Final = "scheduling.volcano.sh"
_GROUP_OF_PLUGINS: Final = "scheduling.x-k8s.io"
_HIGHEST_CHAIN: Final = 8
_BATCH_JOB: Final = "Job"
_BOUND: Final = "PodScheduled"
_REFUSALS: Final = ("Unschedulable", "SchedulerError")
"""Reasons that kube-scheduler gives for a pod that it has tried.

A pod with a gate has `SchedulingGated`.
"""
_DEFAULTS: Final = QuotaSettings()


class PodContext:
    """What determines a pod's row besides the pod: owners, groups, budgets, settings."""

    def __init__(self, settings: QuotaSettings = _DEFAULTS) -> None:
        self.settings = settings
        self.workloads: dict[str, Workload] = {}
        self.surplus: set[str] = set()
        """Uids of surplus pods: the Job has more than may run, so its controller removes them."""
        self._group_sizes: dict[tuple[str, str, str], int] = {}
        self._budgets: dict[str, Budget] = {}
        self._budgets_in: dict[str, dict[str, Budget]] = {}

    def put(self, workload: Workload) -> bool:
        """Returns whether the change may affect pods of the workload's namespace."""
        before = self.workloads.get(workload.uid)
        self.workloads[workload.uid] = workload
        if workload.kind == _GROUP:
            self._group_sizes[_group_key(workload)] = workload.least
        return before is None or _parts_for_pods(before) != _parts_for_pods(workload)

    def drop(self, uid: str) -> Workload | None:
        """Returns the row that was removed."""
        before = self.workloads.pop(uid, None)
        if before is not None and before.kind == _GROUP:
            self._group_sizes.pop(_group_key(before), None)
        return before

    def put_budget(self, budget: Budget) -> bool:
        """Returns whether the budget selects other pods now."""
        before = self._budgets.get(budget.uid)
        self._budgets[budget.uid] = budget
        self._budgets_in.setdefault(budget.namespace, {})[budget.uid] = budget
        return before is None or (before.name, before.selector) != (budget.name, budget.selector)

    def drop_budget(self, uid: str) -> Budget | None:
        before = self._budgets.pop(uid, None)
        if before is not None:
            del self._budgets_in[before.namespace][uid]
        return before

    def allowed(self) -> dict[str, int]:
        """How many more pods may be evicted under each budget, by `namespace/name`."""
        return {budget.key: budget.allowed for budget in self._budgets.values()}

    def owners_of(self, pod: Pod) -> list[Workload]:
        """The known owners, the nearest first."""
        found: list[Workload] = []
        owner = pod.controller
        uid = owner.uid if owner else ""
        while (
            uid
            and len(found) < _HIGHEST_CHAIN
            and (workload := self.workloads.get(uid)) is not None
        ):
            found.append(workload)
            uid = workload.owner
        return found

    def budgets_of(self, pod: Pod) -> tuple[str, ...]:
        """Budgets that the eviction API checks: none for a pod that does not run yet."""
        if pod.phase == _PENDING:
            return ()
        there = self._budgets_in.get(pod.namespace)
        return (
            tuple(sorted(budget.key for budget in there.values() if _selects(budget, pod)))
            if there
            else ()
        )

    def group_size(self, group: str, namespace: str, name: str) -> int:
        """How many pods of the group its PodGroup requires to run together; 0 = no PodGroup."""
        return self._group_sizes.get((group, namespace, name), 0)


def quota_pod(pod: Pod, around: PodContext) -> QuotaPod | None:
    """The pod as quota counts it, in a leaf's namespace.

    None: quota does not count it. It has finished, is exempt, or stops without having been
    admitted.
    """
    is_admitted = QUOTA_GATE not in pod.gates
    owners = around.owners_of(pod)
    is_stopping = pod.deleted_at is not None or _is_suspended(owners) or pod.uid in around.surplus
    if pod.is_finished or is_exempt(pod) or (is_stopping and not is_admitted):
        return None
    condition = _quota_condition(pod)
    gang, gang_size = _gang(pod, owners, around)
    deployment, revision = _revision(owners)
    created_at = pod.created_at or 0.0
    return QuotaPod(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        request=pod.requests,
        priority=pod.priority,
        is_admitted=is_admitted,
        is_stopping=is_stopping,
        is_ready=_is_ready(pod),
        is_preemptible=_is_preemptible(pod, owners, around.settings),
        created_at=created_at,
        admitted_at=_admitted_at(condition, created_at) if is_admitted else 0.0,
        claim_since=None
        if condition is None or is_admitted or condition.reason != _CLAIMS
        else condition.at or created_at,
        owner=_topmost(pod, owners),
        gang=gang,
        gang_size=gang_size,
        deployment=deployment,
        revision=revision,
        waits_for_surge=pod.annotations.get(ANNOTATION_SURGE) == "wait",
        user=_user(pod, owners),
        budgets=around.budgets_of(pod),
        stopping_at=pod.deleted_at,
        grace_seconds=pod.grace_seconds,
        node=pod.node,
        choice=pod.node_choice,
        card_units=_card_units(pod),
        condition_reason=condition.reason if condition else "",
        condition_message=condition.message if condition else "",
        condition_since=condition.at if condition else None,
        removal=removal_turn(pod) if is_job_pod(pod) else (),
        is_refused=is_admitted and not pod.node and _is_refused(pod),
        gated_by=", ".join(gate for gate in pod.gates if gate != QUOTA_GATE),
        never_preempts=pod.never_preempts,
    )


def is_job_pod(pod: Pod) -> bool:
    """Whether the Job controller manages the pod."""
    return pod.controller is not None and pod.controller.kind == _BATCH_JOB


def bound_at(pod: Pod) -> Moment:
    """When the pod was bound to its node; 0 = it is not bound."""
    return (
        next(
            (
                each.at or 0.0
                for each in pod.conditions
                if each.type == _BOUND and each.status == "True"
            ),
            0.0,
        )
        if pod.node
        else 0.0
    )


def _is_refused(pod: Pod) -> bool:
    return any(
        each.type == _BOUND and each.status == "False" and each.reason in _REFUSALS
        for each in pod.conditions
    )


def quota_state(snapshot: ClusterSnapshot, now: Moment) -> QuotaState:
    """The state of the cluster that a snapshot contains.

    Without a readable tree the state has no pods.
    """
    tree = snapshot.quota_tree
    root = (tree.root if tree else snapshot.quota) or QuotaNode("root", "root")
    settings = tree.settings if tree else _DEFAULTS
    around = PodContext(settings)
    for workload in snapshot.workloads:
        around.put(workload)
    for budget in snapshot.budgets:
        around.put_budget(budget)
    around.surplus = surplus_of(snapshot.pods, around.workloads)
    own = own_namespaces(snapshot.namespaces)
    found = [
        quota_pod(pod, around)
        for leaf in root.leaves()
        for name in leaf.namespaces
        if name not in PROTECTED and name not in own
        for pod in snapshot.pods_in(name)
    ]
    pods = tuple(pod for pod in found if pod is not None)
    return QuotaState(
        tree=root,
        pods=pods,
        budgets=around.allowed(),
        now=now,
        settings=settings,
        nodes=node_rooms(snapshot, {pod.uid for pod in pods}, now)
        if snapshot.was_read("nodes")
        else None,
        workloads=around.workloads,
        user_caps=user_caps(root, pods),
        violations=validate(tree, tree, snapshot.namespace_names, own=own) if tree else (),
        scheduled_at=max(map(bound_at, snapshot.pods), default=0.0),
    )


def user_caps(root: QuotaNode, pods: Iterable[QuotaPod]) -> dict[tuple[str, str], Amounts]:
    """The most that each user of these pods may have, by leaf and user, where there is a cap."""
    capped = {
        name: leaf
        for leaf in root.leaves()
        if leaf.user_cap or leaf.user_caps
        for name in leaf.namespaces
    }
    return {
        (leaf.name, pod.user): cap
        for pod in pods
        if pod.user and (leaf := capped.get(pod.namespace)) and (cap := leaf.cap_of(pod.user))
    }


# --- owner, user and gang -------------------------------------------------------------------------


def _topmost(pod: Pod, owners: list[Workload]) -> str:
    """The uid of the topmost owner, such as a Deployment rather than its ReplicaSet.

    An MPIJob rather than the Job of its launcher. A job made by a schedule is its own topmost
    owner, and so is a job with an unknown owner.
    """
    controller = pod.controller
    if not owners:
        return controller.uid if controller else ""
    uid = ""
    for workload in owners:
        if workload.kind in MAKERS:
            return uid
        uid = workload.uid
    last = owners[-1]
    return (
        last.owner if last.owner and not last.can_suspend and last.owner_kind not in MAKERS else uid
    )


def _is_suspended(owners: Iterable[Workload]) -> bool:
    """Whether a job that the pod belongs to is suspended: its controller will delete the pod."""
    return any(owner.is_suspended for owner in owners if owner.kind not in MAKERS)


def _user(pod: Pod, owners: list[Workload]) -> str:
    """The user label of the topmost owner; if that is not known, the pod's."""
    if owners and not owners[-1].owner:
        return owners[-1].user
    return pod.labels.get(LABEL_USER, "")


def _revision(owners: list[Workload]) -> tuple[str, int]:
    nearest = owners[0] if owners else None
    if nearest is None or nearest.kind != "ReplicaSet" or nearest.owner_kind != "Deployment":
        return "", 0
    return nearest.owner, nearest.revision


def _gang(pod: Pod, owners: list[Workload], around: PodContext) -> tuple[str, int]:
    """Name and size.

    A job that is a gang by its kind is always one: labels of its pods may leave out some of them.
    """
    for workload in reversed(owners):
        if workload.least > 0:
            return f"{workload.kind.lower()}/{workload.name}", workload.least
    labels, annotations = pod.labels, pod.annotations
    if name := labels.get(LABEL_POD_GROUP):
        return _sized(name, labels.get(LABEL_POD_GROUP_SIZE, ""))
    if name := annotations.get(GANG_KOORDINATOR):
        return _sized(name, annotations.get(GANG_KOORDINATOR_SIZE, ""))
    for group, named in (
        (_GROUP_OF_PLUGINS, labels.get(LABEL_GANG) or labels.get(LABEL_OLD_GANG)),
        (_VOLCANO_GROUP, annotations.get(GANG_VOLCANO)),
    ):
        if named and (size := around.group_size(group, pod.namespace, named)):
            return named, size
    return "", 0


def _sized(name: str, size: str) -> tuple[str, int]:
    """A malformed size makes no gang."""
    return (
        (name, int(size))
        if size.isascii() and size.isdigit() and 0 < len(size) < 7 and int(size)
        else ("", 0)
    )


# --- status ---------------------------------------------------------------------------------------


def _quota_condition(pod: Pod) -> Condition | None:
    return next((each for each in pod.conditions if each.type == QUOTA_CONDITION), None)


def _admitted_at(condition: Condition | None, created_at: Moment) -> Moment:
    """A pod without quota's condition existed before the controller; if its condition is not True
    yet, the pod was admitted a moment ago.
    """
    if condition is None:
        return created_at
    return condition.at or created_at if condition.status == "True" else inf


def _is_ready(pod: Pod) -> bool:
    """Whether the pod is ready.

    The reader drops a condition that is True and has neither reason nor message.
    """
    return pod.phase == _RUNNING and all(
        each.type != "Ready" or each.status == "True" for each in pod.conditions
    )


def _unknown_owner_kind(pod: Pod, owners: list[Workload]) -> str:
    """The kind of the unknown owner above those that are known; "" = all are known.

    Its kind may be new to the API server, or the controller may not read it.
    """
    if owners:
        return owners[-1].owner_kind if owners[-1].owner else ""
    return pod.controller.kind if pod.controller else ""


def _is_preemptible(pod: Pod, owners: list[Workload], settings: QuotaSettings) -> bool:
    labelled = preemptible(pod.labels)
    if labelled is not None:
        return labelled
    if not any(owner.controller for owner in pod.owners):
        return settings.are_bare_pods_preemptible
    if QUOTA_GATE not in pod.gates and _unknown_owner_kind(pod, owners) in _SUSPENDED:
        return False
    return next(
        (owner.is_preemptible for owner in owners if owner.is_preemptible is not None), True
    )


def _card_units(pod: Pod) -> int:
    if not asks_share(pod):
        return 0
    need = gpu_need(pod)
    return (
        max((part.units for part in need.running), default=need.units)
        if need.is_split
        else need.units
    )


def _selects(budget: Budget, pod: Pod) -> bool:
    return budget.selector is not None and all(
        holds_for(each, pod.labels) for each in budget.selector
    )


def _group_key(workload: Workload) -> tuple[str, str, str]:
    return workload.api_version.partition("/")[0], workload.namespace, workload.name


def _parts_for_pods(workload: Workload) -> tuple[object, ...]:
    return (
        *(
            workload.name,
            workload.owner,
            workload.owner_kind,
            workload.revision,
            workload.can_suspend,
        ),
        *(
            workload.least,
            workload.is_preemptible,
            workload.user,
            workload.is_suspended,
            workload.can_lower,
            workload.pods,
        ),
    )
