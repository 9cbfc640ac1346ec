"""One EndpointSlice for each Service that selects pods, as the real controller writes it.

No packet uses it: `kubectl describe service` prints it. Services of jobs get none: there are
thousands of them, and their endpoints are not read.
"""

from __future__ import annotations

from typing import Any

from fairlead_sim.controllers.plan import Plan, View, is_going, owned_by
from fairlead_sim.objects.conditions import is_true, phase_of, status_of
from fairlead_sim.objects.resources import ENDPOINT_SLICES
from fairlead_sim.store.orphans import has_controller

Object = dict[str, Any]

COMPONENT = "endpoint-slice-controller"
_MANAGED = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}


def reconcile(obj: Object, view: View) -> Plan:
    plan, spec, metadata = Plan(), obj["spec"], obj["metadata"]
    if not spec.get("selector") or spec.get("type") == "ExternalName" or has_controller(obj):
        return plan
    pods = [
        pod
        for pod in view.pods_in(metadata["namespace"])
        if selects_pod(obj, pod) and stand(pod)[0]
    ]
    headless = {"service.kubernetes.io/headless": ""} if spec.get("clusterIP") == "None" else {}
    labels = {
        **(metadata.get("labels") or {}),
        **_MANAGED,
        **headless,
        "kubernetes.io/service-name": metadata["name"],
    }
    wanted = {
        "addressType": "IPv4",
        "endpoints": [
            _endpoint(pod, is_always_ready=bool(spec.get("publishNotReadyAddresses")))
            for pod in pods
        ]
        or None,
        "ports": [_port(port, pods[0]) for port in spec.get("ports") or ()] if pods else None,
    }
    found = view.controlled(obj, ENDPOINT_SLICES.kind)
    if not found:
        (name,) = view.names_below(obj, 1)
        new = {
            "name": name,
            "generateName": name[:-5],
            "namespace": metadata["namespace"],
            "ownerReferences": owned_by(obj),
        }
        version = {"apiVersion": ENDPOINT_SLICES.api_version, "kind": ENDPOINT_SLICES.kind}
        plan.create.append({**version, "metadata": {**new, "labels": labels}, **wanted})
    elif (
        any(found[0].get(key) != value for key, value in wanted.items())
        or found[0]["metadata"].get("labels") != labels
    ):
        plan.change.append(
            (
                found[0],
                {**found[0], **wanted, "metadata": {**found[0]["metadata"], "labels": labels}},
            )
        )
    return plan


def selects_pod(service: Object, pod: Object) -> bool:
    """Whether the pod is one of the Service's; a Service without a selector has none."""
    selector = service["spec"].get("selector")
    return bool(selector) and selector.items() <= (pod["metadata"].get("labels") or {}).items()


def stand(pod: Object) -> tuple[Any, ...]:
    """All parts of a pod that an endpoint contains or is chosen by; first its address, "" if it has
    none or is finished.
    """
    address = "" if phase_of(pod) in ("Succeeded", "Failed") else status_of(pod).get("podIP", "")
    return address, is_true(pod, "Ready"), is_going(pod), pod["metadata"].get("labels")


def _endpoint(pod: Object, *, is_always_ready: bool) -> Object:
    address, is_ready, is_ending, _ = stand(pod)
    metadata = pod["metadata"]
    return {
        "addresses": [address],
        "conditions": {
            "ready": is_always_ready or (is_ready and not is_ending),
            "serving": is_ready,
            "terminating": is_ending,
        },
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": {
            "kind": "Pod",
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        },
    }


def _port(port: Object, pod: Object) -> Object:
    """A port by its number; a named one as the first pod has it."""
    target = port.get("targetPort", port["port"])
    if isinstance(target, str):
        ports = [
            each for container in pod["spec"]["containers"] for each in container.get("ports") or ()
        ]
        target = next((each["containerPort"] for each in ports if each.get("name") == target), None)
    return {"name": port.get("name", ""), "port": target, "protocol": port.get("protocol", "TCP")}
