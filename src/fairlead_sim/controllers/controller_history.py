"""The ControllerRevisions of StatefulSets and DaemonSets, which `kubectl rollout undo` reads.

The newest number is the wanted template, also when that came back: then its old revision gets a new
number.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fairlead_sim.controllers.plan import Plan, View, claim, owned_by, template_hash

Object = dict[str, Any]

HASH_LABEL = "controller-revision-hash"


def sync_history(obj: Object, view: View, plan: Plan) -> tuple[list[Object], Object]:
    """All revisions, the oldest first, and the one of the wanted template, which is made or
    renumbered if need be.
    """
    known = sorted(
        claim(obj, "ControllerRevision", view, plan),
        key=lambda item: (item["revision"], item["metadata"]["name"]),
    )
    data = {"spec": {"template": {**obj["spec"]["template"], "$patch": "replace"}}}
    wanted = next((item for item in reversed(known) if item["data"] == data), None)
    newest = known[-1]["revision"] if known else 0
    if wanted is None:
        wanted = _revision(obj, data, newest + 1)
        plan.create.append(wanted)
        return [*known, wanted], wanted
    if wanted["revision"] < newest:
        renumbered = {**wanted, "revision": newest + 1}
        plan.change.append((wanted, renumbered))
        known.remove(wanted)
        known.append(renumbered)
        wanted = renumbered
    return known, wanted


def forget_revisions(
    obj: Object, revisions: list[Object], live: Collection[str], plan: Plan
) -> None:
    """Delete the oldest beyond `revisionHistoryLimit`; those named in `live` do not count."""
    limit = obj["spec"].get("revisionHistoryLimit")
    idle = [item for item in revisions if item["metadata"]["name"] not in live]
    plan.delete += idle[: max(0, len(idle) - int(10 if limit is None else limit))]


def template_of(revision: Object) -> Object:
    template = revision["data"]["spec"]["template"]
    return {key: value for key, value in template.items() if key != "$patch"}


def hash_of(revision: Object) -> str:
    return str(revision["metadata"]["labels"][HASH_LABEL])


def _revision(obj: Object, data: Object, number: int) -> Object:
    label = template_hash(obj["spec"]["template"])
    labels = {
        **((obj["spec"]["template"].get("metadata") or {}).get("labels") or {}),
        HASH_LABEL: label,
    }
    metadata = {
        "name": f"{obj['metadata']['name']}-{label}",
        "namespace": obj["metadata"]["namespace"],
        "labels": labels,
        "ownerReferences": owned_by(obj),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata,
        "data": data,
        "revision": number,
    }
