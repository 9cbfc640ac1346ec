"""The conditions of a namespace that is being deleted: its remaining content.

They have the real controller's words.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from fairlead_sim.controllers.plan import Plan, View, is_going
from fairlead_sim.objects.conditions import conditions_of, status_of, with_condition

Object = dict[str, Any]

LOOK_AGAIN_SECONDS = 5.0
_FINE = (
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    (
        "NamespaceFinalizersRemaining",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
)


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    if not is_going(obj):
        return plan
    contents = view.contents(obj["metadata"]["name"])
    counts = sorted(
        f"{resource} has {len(objects)} resource instances"
        for resource, objects in contents.items()
    )
    held = Counter(
        name
        for objects in contents.values()
        for item in objects
        for name in item["metadata"].get("finalizers") or ()
    )
    finalizers = sorted(f"{name} in {count} resource instances" for name, count in held.items())
    detail = {
        "NamespaceContentRemaining": (
            "SomeResourcesRemain",
            f"Some resources are remaining: {', '.join(counts)}",
        )
        if counts
        else None,
        "NamespaceFinalizersRemaining": (
            (
                "SomeFinalizersRemain",
                (
                    "Some content in the namespace has finalizers "
                    f"remaining: {', '.join(finalizers)}"
                ),
            )
            if finalizers
            else None
        ),
    }
    conditions = conditions_of(obj)
    for kind, reason, message in _FINE:
        trouble = detail.get(kind)
        state = ("True", *trouble) if trouble else ("False", reason, message)
        conditions = with_condition(conditions, kind, *state, view.time)
    plan.status = {**status_of(obj), "conditions": conditions}
    plan.wake(view.now + LOOK_AGAIN_SECONDS)
    return plan
