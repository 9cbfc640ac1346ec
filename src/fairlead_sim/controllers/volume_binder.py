"""The volume of each claim: the one that it names or that names it, else the smallest that fits.

Nothing is provisioned, and pods do not wait for their claims: no volume is ever mounted here.
"""

from __future__ import annotations

from typing import Any

from fairlead.wire.kube.quantity import parse_quantity
from fairlead_sim.controllers.plan import Plan, View, is_going
from fairlead_sim.schema.selector import selects

Object = dict[str, Any]


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    bound_to = obj["spec"].get("volumeName")
    volumes = [
        volume
        for volume in view.volumes()
        if not bound_to or volume["metadata"]["name"] == bound_to
    ]
    mine = [volume for volume in volumes if _claimed_by(volume, obj)]
    fitting = [
        volume
        for volume in volumes
        if not is_going(volume)
        and not (volume["spec"].get("claimRef") or {}).get("name")
        and _fits(volume, obj, not bound_to)
    ]
    volume = next(iter(mine), None) or min(
        fitting, key=lambda volume: (_size(volume), volume["metadata"]["name"]), default=None
    )
    if volume is None:
        plan.status = {"phase": "Pending"}
        return plan
    spec, metadata = volume["spec"], obj["metadata"]
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "name": metadata["name"],
        "namespace": metadata["namespace"],
    }
    if not (volume["spec"].get("claimRef") or {}).get("uid"):
        plan.change.append(
            (
                volume,
                {**volume, "spec": {**spec, "claimRef": {**reference, "uid": metadata["uid"]}}},
            )
        )
    if not bound_to:
        plan.change.append(
            (obj, {**obj, "spec": {**obj["spec"], "volumeName": volume["metadata"]["name"]}})
        )
    plan.status = {
        "phase": "Bound",
        "accessModes": spec.get("accessModes") or [],
        "capacity": spec.get("capacity") or {},
    }
    return plan


def reconcile_volume(obj: Object, view: View) -> Plan:
    """A volume's own phase follows from its claim."""
    plan = Plan()
    reference = obj["spec"].get("claimRef")
    if not reference:
        plan.status = {"phase": "Available"}
    else:
        claim = view.owner(
            reference["namespace"],
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": reference["name"]},
        )
        is_new = reference.get("uid") is None
        is_there = claim is not None and (is_new or reference["uid"] == claim["metadata"]["uid"])
        if claim is not None and is_new and claim["spec"].get("volumeName"):
            is_there = claim["spec"]["volumeName"] == obj["metadata"]["name"]
        plan.status = {"phase": "Bound" if is_there else "Available" if is_new else "Released"}
    return plan


def _claimed_by(volume: Object, claim: Object) -> bool:
    reference, metadata = volume["spec"].get("claimRef") or {}, claim["metadata"]
    is_named = (reference.get("namespace"), reference.get("name")) == (
        metadata["namespace"],
        metadata["name"],
    )
    return is_named and reference.get("uid") in (None, metadata["uid"])


def _fits(volume: Object, claim: Object, by_selector: bool) -> bool:
    spec, wish = volume["spec"], claim["spec"]
    asked = parse_quantity(
        ((wish.get("resources") or {}).get("requests") or {}).get("storage", "0")
    )
    return (
        (spec.get("storageClassName") or "") == (wish.get("storageClassName") or "")
        and set(wish.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and _size(volume) >= asked
        and (not by_selector or wish.get("selector") is None or selects(wish["selector"])(volume))
    )


def _size(volume: Object) -> int:
    return parse_quantity((volume["spec"].get("capacity") or {}).get("storage", "0"))
