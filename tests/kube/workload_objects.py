"""Manifests of the workloads of both worlds, which mean the same to KWOK (by annotations) and to
the simulated kubelets (by images).
"""

from __future__ import annotations

from typing import Any

from tests.kube.kwok_stages import EXIT_CODE, READY_DELAY, RUN_TIME

Object = dict[str, Any]

PLAIN = {"role": "plain"}


def node(
    name: str, role: str, *, cpu: str = "64", taints: tuple[Object, ...] = (), **labels: str
) -> Object:
    """A node that KWOK plays and that is Ready from the start."""
    amounts = {"cpu": cpu, "memory": "256Gi", "pods": "110"}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
    }
    metadata = {
        "name": name,
        "labels": {"kubernetes.io/hostname": name, "role": role, **labels},
        "annotations": {"kwok.x-k8s.io/node": "fake"},
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": {"taints": list(taints)} if taints else {},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def taint(key: str, effect: str, value: str = "yes") -> Object:
    return {"key": key, "value": value, "effect": effect}


def tolerates(key: str, **more: Any) -> Object:
    return {"key": key, "operator": "Exists", **more}


def container(image: str = "app:1", cpu: str = "100m") -> Object:
    return {"name": "main", "image": image, "resources": {"requests": {"cpu": cpu}}}


def template(
    image: str = "app:1", *, app: str = "web", cpu: str = "100m", role: str = "plain", **spec: Any
) -> Object:
    """A pod template whose image decides how its container behaves: `train:2s` and `fail:2s` end,
    `missing:1` never starts.
    """
    name, _, tag = image.partition(":")
    notes = {
        "missing": {READY_DELAY: "24h"},
        "train": {RUN_TIME: tag},
        "fail": {RUN_TIME: tag, EXIT_CODE: "1"},
    }
    notes["crash"] = {RUN_TIME: tag, EXIT_CODE: "139"}
    selector = {"nodeSelector": {"role": role}} if role else {}
    base: Object = {
        "terminationGracePeriodSeconds": 0,
        "containers": [container(image, cpu)],
        **selector,
    }
    return {
        "metadata": {"labels": {"app": app}, "annotations": notes.get(name, {})},
        "spec": {**base, **spec},
    }


def pod(name: str, image: str = "app:1", *, labels: Object | None = None, **more: Any) -> Object:
    made = template(image, **more)
    metadata = {
        "name": name,
        "labels": labels if labels is not None else made["metadata"]["labels"],
        "annotations": made["metadata"]["annotations"],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made["spec"]}


def _apps(kind: str, name: str, made: Object, **spec: Any) -> Object:
    selector = {"matchLabels": made["metadata"]["labels"]}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": selector, "template": made, **spec},
    }


def deployment(made: Object, replicas: int = 3, **spec: Any) -> Object:
    return _apps("Deployment", "web", made, replicas=replicas, **spec)


def rolling(surge: int | str, unavailable: int | str) -> Object:
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
    }


def replica_set(made: Object, replicas: int) -> Object:
    return _apps("ReplicaSet", "web", made, replicas=replicas)


def stateful_set(made: Object, replicas: int, **spec: Any) -> Object:
    return _apps("StatefulSet", "web", made, replicas=replicas, serviceName="web", **spec)


def daemon_set(made: Object, **spec: Any) -> Object:
    return _apps("DaemonSet", "web", made, **spec)


def job(image: str, *, role: str = "plain", **spec: Any) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "work"},
        "spec": job_spec(image, role=role, **spec),
    }


def job_spec(image: str, *, role: str = "plain", **spec: Any) -> Object:
    made = template(image, app="work", role=role, restartPolicy="Never")
    return {"template": made, **spec}


def config_map(name: str, **metadata: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def budget(app: str, **spec: Any) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def owned(obj: Object, **more: Any) -> Object:
    """The ownerReference to a stored object."""
    metadata = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        **more,
    }
