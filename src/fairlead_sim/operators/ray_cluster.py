"""kuberay-operator's RayClusters: a head pod with its Service, and workers by group.

Lost pods are created again.

Left out: autoscaling, the redis of a head that survives, ingress, and the names of hosts of one
worker.
"""

from __future__ import annotations

from typing import Any

from fairlead.wire.names import LABEL_RAY_CLUSTER, LABEL_RAY_GROUP, LABEL_RAY_NODE_TYPE
from fairlead_sim.controllers.plan import Plan, View, generated_pod, is_going, owned_by
from fairlead_sim.objects.conditions import is_true, phase_of, status_of
from fairlead_sim.objects.pod_counts import BURST

Object = dict[str, Any]

HEAD_GROUP = "headgroup"


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    pods = [pod for pod in view.pods_of(obj) if not is_going(pod)]
    lost = [pod for pod in pods if phase_of(pod) in ("Succeeded", "Failed")]
    plan.delete += lost
    staying = [pod for pod in pods if pod not in lost]
    if not view.controlled(obj, "Service"):
        plan.create.append(_service(obj))
    for group, kind, wanted, template in groups_of(obj["spec"]):
        mine = [pod for pod in staying if pod["metadata"]["labels"].get(LABEL_RAY_GROUP) == group]
        plan.delete += mine[wanted:]
        missing = min(max(0, wanted - len(mine)), BURST)
        # Names are made below the cluster's for all groups at once: the group's own part keeps them
        # apart.
        for name in view.names_below(obj, missing):
            _create(obj, group, kind, template, name.rpartition("-")[2], plan)
    plan.status = _status(obj, staying, view)
    return plan


def groups_of(spec: Object) -> list[tuple[str, str, int, Object]]:
    """(group, node type, pods, template) of the head and of every worker group."""
    head = spec["headGroupSpec"]
    groups = [(HEAD_GROUP, "head", 1, head["template"])]
    for group in spec.get("workerGroupSpecs") or ():
        replicas = group.get("replicas")
        count = int(group.get("minReplicas") or 0) if replicas is None else int(replicas)
        pods = count * max(1, int(group.get("numOfHosts") or 1))
        groups.append(
            (group["groupName"], "worker", 0 if group.get("suspend") else pods, group["template"])
        )
    return groups


def _create(obj: Object, group: str, kind: str, template: Object, suffix: str, plan: Plan) -> None:
    cluster = obj["metadata"]["name"]
    name = f"{cluster}-head-{suffix}" if kind == "head" else f"{cluster}-{group}-worker-{suffix}"
    labels = {
        "app.kubernetes.io/created-by": "kuberay-operator",
        "app.kubernetes.io/name": "kuberay",
        LABEL_RAY_CLUSTER: cluster,
        LABEL_RAY_GROUP: group,
        "ray.io/identifier": f"{cluster}-{kind}",
        "ray.io/is-ray-node": "yes",
        LABEL_RAY_NODE_TYPE: kind,
    }
    first, *rest = template["spec"]["containers"]
    started = {
        **first,
        "command": ["ray", "start", *(["--head"] if kind == "head" else []), "--block"],
    }
    spec = {**template["spec"], "containers": [started, *rest]}
    plan.create.append(generated_pod({**template, "spec": spec}, obj, name, labels))
    event = "CreatedHeadPod" if kind == "head" else "CreatedWorkerPod"
    plan.normal(event, f"Created {kind} Pod {obj['metadata']['namespace']}/{name}")


def _service(obj: Object) -> Object:
    cluster = obj["metadata"]["name"]
    labels = {LABEL_RAY_CLUSTER: cluster, LABEL_RAY_NODE_TYPE: "head"}
    metadata = {
        "name": f"{cluster}-head-svc",
        "namespace": obj["metadata"]["namespace"],
        "labels": labels,
        "ownerReferences": owned_by(obj),
    }
    ports = [
        {"name": name, "port": port}
        for name, port in (("gcs-server", 6379), ("dashboard", 8265), ("client", 10001))
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"clusterIP": "None", "selector": labels, "ports": ports},
    }


def _status(obj: Object, pods: list[Object], view: View) -> Object:
    workers = [
        pod for pod in pods if pod["metadata"]["labels"].get(LABEL_RAY_NODE_TYPE) == "worker"
    ]
    wanted = sum(count for _, kind, count, _ in groups_of(obj["spec"]) if kind == "worker")
    ready = sum(is_true(pod, "Ready") for pod in workers)
    head = next((pod for pod in pods if pod not in workers), None)
    before = status_of(obj)
    is_ready = head is not None and is_true(head, "Ready") and ready >= wanted
    status: Object = {
        "desiredWorkerReplicas": wanted,
        "availableWorkerReplicas": sum(phase_of(pod) == "Running" for pod in workers),
        "readyWorkerReplicas": ready,
        "observedGeneration": obj["metadata"].get("generation", 1),
        "head": {"podName": head["metadata"]["name"], "podIP": status_of(head).get("podIP", "")}
        if head
        else {},
        **({"state": "ready"} if is_ready or before.get("state") == "ready" else {}),
    }
    same = {key: value for key, value in before.items() if key != "lastUpdateTime"}
    return before if same == status else {**status, "lastUpdateTime": view.time}
