"""What Fluid's chart of Alluxio installs for a runtime: master, workers and fuse, and the release.

Containers have images of the stand-in, because no Alluxio runs here. Workers of one runtime avoid
each other, as Fluid's do: their ports allow one of them per node.
"""

from __future__ import annotations

import json
import re
from typing import Any

from fairlead.wire.data.stand_in import stand_in_image
from fairlead.wire.kube.quantity import parse_quantity
from fairlead_sim.operators.fluid import (
    failed_install,
    helm_labels,
    identity,
    owner_reference,
    release_of,
)
from fairlead_sim.operators.fluid_cache import claims_of_source, memory_quota_of

Object = dict[str, Any]

MASTER, WORKER, FUSE = "master", "worker", "fuse"
CHART = {"name": "alluxio", "version": "0.9.14"}
RPC_PORT = 20000
EXCLUSIVE, SHARED = "Exclusive", "Shared"
_PLACEMENT = "fluid.io/dataset-placement"
_HOST = "kubernetes.io/hostname"
_is_label = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII).fullmatch
_SOURCES = "/underFSStorage"


def part_name(runtime: Object, part: str) -> str:
    return f"{runtime['metadata']['name']}-{part}"


def worker_selector(runtime: Object) -> str:
    """The labels of worker pods, as `scale` reports them."""
    return f"app=alluxio,release={runtime['metadata']['name']},role=alluxio-worker"


def config_maps(runtime: Object) -> list[str]:
    """Names of the ConfigMaps that go with the runtime."""
    return [part_name(runtime, each) for each in ("alluxio-values", "config", "mount-config")]


def values_name(runtime: Object) -> str:
    return config_maps(runtime)[0]


def installed_objects(runtime: Object, dataset: Object, now: float) -> list[Object]:
    """Everything that the first step of a setup creates. Workers begin with 0 replicas."""
    rendered = [
        *(_owned_map(runtime, dataset, name) for name in config_maps(runtime)[1:]),
        _service(runtime, dataset),
        _stateful_set(runtime, dataset, MASTER, _master_replicas(runtime)),
        _stateful_set(runtime, dataset, WORKER, 0),
        _daemon_set(runtime, dataset),
    ]
    name, namespace = runtime["metadata"]["name"], runtime["metadata"]["namespace"]
    release = release_of(name, namespace, CHART, rendered, now)
    return [values_map(runtime, dataset), release, *rendered]


def values_map(runtime: Object, dataset: Object) -> Object:
    """The values of the release. Nothing owns them: Fluid removes them by name."""
    values = {"data": json.dumps(runtime["spec"], sort_keys=True)}
    meta = _meta(runtime, values_name(runtime), {"fluid.io/dataset-id": identity(dataset)})
    del meta["ownerReferences"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": values}


def _master_replicas(runtime: Object) -> int:
    return int((runtime["spec"].get("master") or {}).get("replicas") or 1)


def _owned_map(runtime: Object, dataset: Object, name: str) -> Object:
    meta = _meta(runtime, name, {"fluid.io/dataset-id": identity(dataset)})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}}


def _service(runtime: Object, dataset: Object) -> Object:
    """The name of the first master."""
    labels, name = _labels(runtime, dataset, MASTER), part_name(runtime, MASTER)
    chosen = {key: labels[key] for key in ("app", "role", "release")}
    pod = {"statefulset.kubernetes.io/pod-name": f"{name}-0"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta(runtime, f"{name}-0", labels),
        "spec": {
            "clusterIP": "None",
            "ports": [{"name": "rpc", "port": RPC_PORT}, {"name": "web", "port": RPC_PORT + 1}],
            "selector": {**chosen, **pod},
        },
    }


def _meta(runtime: Object, name: str, labels: dict[str, str]) -> Object:
    return {
        "name": name,
        "namespace": runtime["metadata"]["namespace"],
        "labels": labels,
        "ownerReferences": [owner_reference(runtime, controls=True)],
    }


def _labels(runtime: Object, dataset: Object, part: str) -> dict[str, str]:
    release = runtime["metadata"]["name"]
    labels = {
        **helm_labels(release, CHART["name"], CHART["version"], dataset),
        "app": "alluxio",
        "chart": f"{CHART['name']}-{CHART['version']}",
        "role": f"alluxio-{part}",
    }
    if part == MASTER:
        labels["name"] = part_name(runtime, MASTER)
    if part == WORKER:
        labels["fluid.io/dataset"] = identity(dataset)
        labels[_PLACEMENT] = placement_of(dataset)
    return labels


def _stateful_set(runtime: Object, dataset: Object, part: str, replicas: int) -> Object:
    labels, name = _labels(runtime, dataset, part), part_name(runtime, part)
    chosen = ("app", "role", "name") if part == MASTER else ("app", "release", "role")
    spec = {
        **_placed(runtime, dataset, part),
        "containers": _containers(runtime, dataset, part),
        "volumes": _volumes(dataset),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": _meta(runtime, name, labels),
        "spec": {
            "podManagementPolicy": "Parallel",
            "replicas": replicas,
            "selector": {"matchLabels": {key: labels[key] for key in chosen}},
            "serviceName": name,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _daemon_set(runtime: Object, dataset: Object) -> Object:
    """Fuse runs where a pod mounts the data set: there the driver labels the node."""
    labels = _labels(runtime, dataset, FUSE)
    chosen = ("app", "release", "role", "chart", "heritage")
    spec = {
        "containers": _containers(runtime, dataset, FUSE)[:1],
        "nodeSelector": {identity(dataset, "fluid.io/f-"): "true"},
        "tolerations": [{"operator": "Exists"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _meta(runtime, part_name(runtime, FUSE), labels),
        "spec": {
            "selector": {"matchLabels": {key: labels[key] for key in chosen}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
            "updateStrategy": {"type": "OnDelete"},
        },
    }


def _placed(runtime: Object, dataset: Object, part: str) -> Object:
    wish = runtime["spec"].get(part) or {}
    placed: Object = {}
    if wish.get("nodeSelector"):
        placed["nodeSelector"] = wish["nodeSelector"]
    if dataset["spec"].get("tolerations"):
        placed["tolerations"] = dataset["spec"]["tolerations"]
    return placed


def _containers(runtime: Object, dataset: Object, part: str) -> list[Object]:
    version = runtime["spec"].get("alluxioVersion") or {}
    image = stand_in_image("alluxio")
    if version.get("image"):
        image = f"{version['image']}:{version.get('imageTag') or 'latest'}"
    wish = (runtime["spec"].get(part) or {}).get("resources") or {}
    first: Object = {"name": f"alluxio-{part}", "image": image, "command": ["/entrypoint.sh"]}
    if wish:
        first["resources"] = wish
    mounts = _volume_mounts(dataset) if part != FUSE else []
    if mounts:
        first["volumeMounts"] = mounts
    second = {"name": f"alluxio-job-{part}", "image": image, "command": ["/entrypoint.sh"]}
    return [first, second]


def source_fault(runtime: Object, dataset: Object) -> str:
    """Why the chart cannot be installed: a claim names the volume of the pods, and not every name
    of a claim is one of a volume. "" if it can.
    """
    for claim, _ in claims_of_source(dataset):
        if not _is_label(claim):
            name = part_name(runtime, MASTER)
            why = (
                f'StatefulSet.apps "{name}" is invalid: spec.template.spec.volumes: Invalid value: '
                f'"{claim}": a lowercase RFC 1123 label must consist of lower case alphanumeric '
                "characters or '-'"
            )
            return failed_install(CHART["name"], why)
    return ""


def _volumes(dataset: Object) -> list[Object]:
    """Master and workers mount the claims of the source."""
    claims = dict.fromkeys(claim for claim, _ in claims_of_source(dataset))
    return [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]


def _volume_mounts(dataset: Object) -> list[Object]:
    return [
        {
            "name": claim,
            "mountPath": f"{_SOURCES}/{claim}",
            **({"subPath": folder} if folder else {}),
        }
        for claim, folder in claims_of_source(dataset)
    ]


def with_worker_memory(runtime: Object) -> Object:
    """The runtime whose workers request the memory of their caches, as Fluid writes it."""
    quota = memory_quota_of(runtime)
    worker = runtime["spec"].get("worker") or {}
    resources = worker.get("resources") or {}
    asked = (resources.get("requests") or {}).get("memory")
    if not quota or (asked and parse_quantity(str(asked)) >= quota):
        return runtime
    levels = (runtime["spec"].get("tieredstore") or {}).get("levels") or ()
    written = [str(each["quota"]) for each in levels if each.get("mediumtype") == "MEM"]
    memory = written[0] if len(written) == 1 else str(quota)
    requests = {**(resources.get("requests") or {}), "memory": memory}
    worker = {**worker, "resources": {**resources, "requests": requests}}
    return {**runtime, "spec": {**runtime["spec"], "worker": worker}}


def with_workers(workers: Object, runtime: Object, dataset: Object) -> Object:
    """The StatefulSet with the replicas of the runtime, and a place for its pods."""
    spec = workers["spec"]
    pod = spec["template"]["spec"]
    if "affinity" not in pod:
        pod = {**pod, "affinity": _affinity(runtime, dataset)}
    replicas = int(runtime["spec"].get("replicas") or 0)
    template = {**spec["template"], "spec": pod}
    return {**workers, "spec": {**spec, "replicas": replicas, "template": template}}


def _affinity(runtime: Object, dataset: Object) -> Object:
    own = {"release": runtime["metadata"]["name"], "role": "alluxio-worker"}
    of_any = {"matchExpressions": [{"key": "fluid.io/dataset", "operator": "Exists"}]}
    near_fuse = {
        "key": identity(dataset, "fluid.io/f-"),
        "operator": "In",
        "values": ["true"],
    }
    preference = {"weight": 100, "preference": {"matchExpressions": [near_fuse]}}
    nodes: Object = {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}
    required = (dataset["spec"].get("nodeAffinity") or {}).get("required")
    if required:
        nodes["requiredDuringSchedulingIgnoredDuringExecution"] = required
    pods: Object = {"requiredDuringSchedulingIgnoredDuringExecution": [_away_from(of_any)]}
    if placement_of(dataset) == SHARED:
        alone = {"key": _PLACEMENT, "operator": "In", "values": [EXCLUSIVE]}
        own_pods: Object = {"matchLabels": own}
        avoided = [_away_from(own_pods), _away_from({"matchExpressions": [alone]})]
        weighted = {"weight": 50, "podAffinityTerm": _away_from(of_any)}
        pods = {
            "preferredDuringSchedulingIgnoredDuringExecution": [weighted],
            "requiredDuringSchedulingIgnoredDuringExecution": avoided,
        }
    return {"nodeAffinity": nodes, "podAntiAffinity": pods}


def _away_from(selector: Object) -> Object:
    return {"labelSelector": selector, "topologyKey": _HOST}


def placement_of(dataset: Object) -> str:
    """Workers of an exclusive data set, the default, share no node with those of another one in
    their namespace.
    """
    return str(dataset["spec"].get("placement") or EXCLUSIVE)
