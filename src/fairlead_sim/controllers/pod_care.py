"""Pods without a working controller: those of lost nodes are deleted, of lost Jobs released."""

from __future__ import annotations

from typing import Any

from fairlead_sim.controllers.job import FINALIZER
from fairlead_sim.controllers.plan import Plan, View
from fairlead_sim.objects.conditions import conditions_of, phase_of, status_of, with_condition

Object = dict[str, Any]

QUARANTINE_SECONDS = 40.0
"""How long a pod stays bound to a missing node, in seconds: the node may come back."""


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    metadata = obj["metadata"]
    if is_untracked_too_late(obj, view):
        kept = [name for name in metadata["finalizers"] if name != FINALIZER]
        plan.change.append((obj, {**obj, "metadata": {**metadata, "finalizers": kept}}))
    node = obj["spec"].get("nodeName")
    if node and not view.has_node(node):
        conditions = with_condition(
            conditions_of(obj),
            "DisruptionTarget",
            "True",
            "DeletionByPodGC",
            "PodGC: node no longer exists",
            view.time,
        )
        phase = phase_of(obj) if phase_of(obj) in ("Succeeded", "Failed") else "Failed"
        plan.status = {**status_of(obj), "phase": phase, "conditions": conditions}
        plan.force.append(obj)
    return plan


def is_untracked_too_late(pod: Object, view: View) -> bool:
    """Whether a Job's finalizer holds a pod whose Job is gone."""
    metadata = pod["metadata"]
    if FINALIZER not in (metadata.get("finalizers") or ()):
        return False
    owners = [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
    found = [view.owner(metadata["namespace"], owner) for owner in owners]
    return not any(
        job is not None and job["metadata"]["uid"] == owner["uid"]
        for job, owner in zip(found, owners, strict=True)
    )
