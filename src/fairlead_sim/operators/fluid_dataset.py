"""Fluid's dataset-controller: a Dataset is NotBound until a runtime of its name serves it, and
stays while a pod mounts it.

Left out: data sets that mount other data sets (`dataset://`).
"""

from __future__ import annotations

import re
from typing import Any

from fairlead.wire.data.fluid import CONTROLLER, FLUID_NAMESPACE
from fairlead.wire.data.stand_in import DATASET_CONTROLLER, SCALED_TO
from fairlead_sim.controllers.plan import Plan, View, is_going
from fairlead_sim.objects.conditions import status_of
from fairlead_sim.operators.fluid import (
    DATASET_FINALIZER,
    finalizers_with,
    is_running,
    mounting_pods,
    runtime_of,
    without_finalizer,
)
from fairlead_sim.operators.fluid_volume import own_claim

Object = dict[str, Any]

BLOCKED_SECONDS = 10.0
"""How often the controller looks again at a Dataset that may not go."""
_is_name = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII).fullmatch
NAME_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def name_fault(name: str) -> str:
    """Why Fluid refuses a name, in its words; "" for a good one.

    >>> name_fault("images"), name_fault("20-images")[:42]
    ('', 'metadata.name: Invalid value: "20-images":')
    """
    return "" if _is_name(name) else f'metadata.name: Invalid value: "{name}": {NAME_RULE}'


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    if not is_running(view, DATASET_CONTROLLER):
        return plan
    _start_runtime_controller(obj, view, plan)
    if fault := name_fault(obj["metadata"]["name"]):
        plan.warning("ErrorCreateDataset", f"Failed to create dataset because err: {fault}")
        return plan
    if is_going(obj):
        _end(obj, view, plan)
        return plan
    finalizers = finalizers_with(obj, DATASET_FINALIZER)
    if finalizers != obj["metadata"].get("finalizers"):
        metadata = {**obj["metadata"], "finalizers": finalizers}
        plan.change.append((obj, {**obj, "metadata": metadata}))
    status = status_of(obj)
    if not status.get("phase"):
        plan.status = {**status, "phase": "NotBound", "conditions": status.get("conditions") or []}
    return plan


def _start_runtime_controller(obj: Object, view: View, plan: Plan) -> None:
    """Scale the runtime's controller from 0 replicas to those that its annotation names."""
    if runtime_of(view, obj) is None:
        return
    controller = view.find("apps/v1", "Deployment", CONTROLLER, FLUID_NAMESPACE)
    if controller is None or controller["spec"].get("replicas", 1) != 0:
        return
    words = str((controller["metadata"].get("annotations") or {}).get(SCALED_TO, "1"))
    replicas = max(1, int(words)) if words.isdecimal() else 1
    plan.change.append(
        (controller, {**controller, "spec": {**controller["spec"], "replicas": replicas}})
    )


def _end(obj: Object, view: View, plan: Plan) -> None:
    if DATASET_FINALIZER not in (obj["metadata"].get("finalizers") or ()):
        return
    if fault := _blocker(obj, view):
        plan.warning("ErrorDeleteDataset", f"Failed to delete dataset because {fault}")
        plan.wake(view.now + BLOCKED_SECONDS)
        return
    plan.change.append((obj, without_finalizer(obj, DATASET_FINALIZER)))


def _blocker(obj: Object, view: View) -> str:
    """Why the Dataset may not go; "": it may. A pod blocks it only if the claim is Fluid's."""
    name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
    if own_claim(view, obj) is not None and (pods := mounting_pods(view, namespace, name)):
        return (
            f"err: can not delete dataset because Pod {pods[0]['metadata']['name']} in Namespace "
            f"{namespace} is using it"
        )
    references = status_of(obj).get("datasetRef") or ()
    return f"there are datasets [{' '.join(references)}] mounted to it" if references else ""
