"""What a researcher sees of the cluster, the quota tree and a quota plan, without names of others.

Nothing here depends on what exists outside the own namespaces, except where it is a figure of
capacity (docs/spec/console.md#what-a-researcher-sees).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from fairlead.model.actions import Manifest
from fairlead.model.event import Event
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.jobs.job import Job
from fairlead.model.keys import ANNOTATION_SUSPENDED_FOR, QUOTA_CONDITION, QUOTA_GATE
from fairlead.model.people.reach import Reach
from fairlead.model.pod import Pod
from fairlead.model.quota.clauses import Clause, Clauses, clause, sentence_of
from fairlead.model.quota.plan import QuotaPlan, QuotaWaiting, Reason
from fairlead.model.quota.tree import QuotaNode, QuotaTree, Violation
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source

ANOTHER_TEAM: Final = "another team"
WITHHELD_TEXT: Final = "not shown, because it may name work of another team"
_QUOTA_EVENTS: Final = "Quota"
"""How reasons of the quota controller's Events begin that are no reasons of a plan."""
_QUOTA_SOURCES: Final = "elasticquota"
"""How the names of sources with the quota tree begin; their messages are faults of the tree."""
_DROPPED: Final = frozenset(("borrowers", "nobody-borrows"))
"""Clauses about the use of other leaves."""
_REPLACED: Final = {
    "kept": "kept-for-others",
    "protected": "protected-others",
    "protected-one": "protected-others",
    "tree-invalid": "tree-invalid-elsewhere",
    "until-gone": "until-stopped",
}
"""Clauses that name other leaves, units or pods -> the clause that does not."""


def restricted(snapshot: ClusterSnapshot, reach: Reach) -> ClusterSnapshot:
    """The cluster with the objects of the own namespaces, all nodes, and the own part of the tree.

    GPU readings are left out: they name the pods that hold a card.
    """
    root = restricted_tree(snapshot.quota, reach) if snapshot.quota else None
    tree, own = snapshot.quota_tree, snapshot.within(reach.namespaces)
    part = replace(
        own,
        pods=_own_pods(own.pods),
        jobs=tuple(_own_job(job, reach) for job in own.jobs),
        events=restricted_events(own.events),
        quota=root,
        quota_tree=QuotaTree(tree.name, tree.namespace, root) if tree and root else None,
        sources={name: _without_names(source) for name, source in snapshot.sources.items()},
    )
    return part.with_node_index_of(snapshot)


def _own_pods(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """The same object if none waits: there may be thousands."""
    gated = [pod for pod in pods if pod.gates]
    if not gated:
        return pods
    return tuple(_own_pod(pod) if QUOTA_GATE in pod.gates else pod for pod in pods)


def _own_pod(pod: Pod) -> Pod:
    """Its quota condition names the leaves and pods that it waits for."""
    return replace(
        pod,
        conditions=tuple(
            replace(each, message=waits_for_quota(each.reason))
            if each.type == QUOTA_CONDITION
            else each
            for each in pod.conditions
        ),
    )


def _own_job(job: Job, reach: Reach) -> Job:
    """The unit for which it is suspended may be another team's."""
    if not _names_another(job.annotations.get(ANNOTATION_SUSPENDED_FOR), reach):
        return job
    return replace(job, annotations={**job.annotations, ANNOTATION_SUSPENDED_FOR: ANOTHER_TEAM})


def is_plain(each: JobInstances) -> bool:
    """Whether it looks the same to everyone who may see its namespace."""
    job = each.job
    return ANNOTATION_SUSPENDED_FOR not in job.annotations and all(
        pod.namespace == job.namespace and QUOTA_GATE not in pod.gates for pod in each.pods
    )


def restricted_instances(each: JobInstances, reach: Reach) -> JobInstances:
    """An own job as it is seen: the same object where nothing of it names another team.

    A pod of another namespace that claims to be the job's is none of it.
    """
    job = _own_job(each.job, reach)
    is_plain = all(
        pod.namespace in reach.namespaces and QUOTA_GATE not in pod.gates for pod in each.pods
    )
    if job is each.job and is_plain:
        return each
    chief: Pod | None = None
    pods, roles = [], []
    for pod, role in zip(each.pods, each.roles, strict=True):
        if pod.namespace in reach.namespaces:
            pods.append(_own_pod(pod) if QUOTA_GATE in pod.gates else pod)
            roles.append(role)
            chief = pods[-1] if pod is each.chief else chief
    return JobInstances(job, tuple(pods), tuple(roles), chief)


def _names_another(claimant: object, reach: Reach) -> bool:
    return (
        isinstance(claimant, str)
        and "/" in claimant
        and claimant.partition("/")[0] not in reach.namespaces
    )


def without_claimant(manifest: Manifest, reach: Reach) -> Manifest:
    """The same object, without the name of another team's unit for which it is suspended."""
    metadata = manifest.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(annotations, dict):
        return manifest
    if not _names_another(annotations.get(ANNOTATION_SUSPENDED_FOR), reach):
        return manifest
    shown = {**annotations, ANNOTATION_SUSPENDED_FOR: ANOTHER_TEAM}
    return {**manifest, "metadata": {**metadata, "annotations": shown}}


def _without_names(source: Source) -> Source:
    """Which objects are malformed is in the message of a source that was read."""
    if source.message and (source.is_ok or source.name.startswith(_QUOTA_SOURCES)):
        return replace(
            source,
            message="some objects are malformed and are left out",
            hint="ask an administrator",
        )
    return source


def sees_leaf(leaf: QuotaNode, reach: Reach) -> bool:
    return leaf.name in reach.leaves or not reach.namespaces.isdisjoint(leaf.namespaces)


def restricted_tree(node: QuotaNode, reach: Reach) -> QuotaNode | None:
    """The own leaves and the nodes above them; None if there are none."""
    if node.is_leaf:
        names = tuple(name for name in node.namespaces if name in reach.namespaces)
        return replace(node, namespaces=names) if sees_leaf(node, reach) else None
    below = tuple(
        found for child in node.children if (found := restricted_tree(child, reach)) is not None
    )
    return replace(node, children=below, namespaces=()) if below else None


def restricted_violations(
    violations: Iterable[Violation], visible: frozenset[str]
) -> Iterator[Violation]:
    """Faults of visible nodes without their texts, which name others; of those elsewhere, one if it
    stops everything. `visible`: names of nodes.
    """
    elsewhere = False
    for each in violations:
        if each.path in visible:
            yield replace(each, message="ask an administrator what is wrong there")
        elif each.stops and not elsewhere:
            elsewhere = True
            yield Violation("", each.code, "ask an administrator where", stops=True)


def restricted_plan(plan: QuotaPlan, reach: Reach) -> QuotaPlan:
    """The own units that wait, and those that are admitted next."""
    own = reach.namespaces
    return QuotaPlan(
        admit=tuple(each for each in plan.admit if each.pod.namespace in own),
        waiting=tuple(
            restricted_waiting(each, reach)
            for each in plan.waiting
            if each.unit.partition("/")[0] in own
        ),
    )


def restricted_waiting(waiting: QuotaWaiting, reach: Reach) -> QuotaWaiting:
    """Why an own unit waits, without other leaves, units and pods."""
    clauses = restricted_clauses(waiting.clauses, reach)
    return replace(
        waiting,
        clauses=clauses,
        message=sentence_of(clauses) if clauses else waits_for_quota(waiting.reason),
        borrowers=(),
        spared=(),
    )


def restricted_clauses(clauses: Clauses, reach: Reach) -> Clauses:
    return tuple(_restricted_clause(each, reach) for each in clauses if each.code not in _DROPPED)


def _restricted_clause(each: Clause, reach: Reach) -> Clause:
    code = _REPLACED.get(each.code)
    if code is not None:
        return clause(code, **each.values)
    if each.code == "queued" and each.values["unit"].partition("/")[0] not in reach.namespaces:
        return clause("queued-others", **each.values)
    return each


def waits_for_quota(reason: str) -> str:
    """
    >>> waits_for_quota("WaitingForIdleQuota")
    'waits for quota: WaitingForIdleQuota'
    """
    return f"waits for quota: {reason}"


def is_quota_reason(reason: str) -> bool:
    """Whether the text of a condition or an Event is of Fairlead's quota, which may name others."""
    return reason.startswith(_QUOTA_EVENTS) or reason in _REASONS


_REASONS: Final = frozenset(Reason)


def restricted_events(events: Iterable[Event]) -> tuple[Event, ...]:
    """Events of own objects. Texts of the quota controller may name others' work."""
    return tuple(
        replace(event, message=WITHHELD_TEXT) if is_quota_reason(event.reason) else event
        for event in events
    )
