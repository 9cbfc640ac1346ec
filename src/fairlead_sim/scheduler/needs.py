"""What a pod requests of a node, and whether it tolerates it, by Kubernetes' own arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from fairlead.model.resources import NOTHING, PODS, Amounts, largest_of, sum_of
from fairlead.wire.kube.quantity import parse_amounts

Object = dict[str, Any]


def amounts_of(texts: Mapping[str, Any] | None) -> Amounts:
    """A ResourceList as exact integers; equal lists are parsed once."""
    return _parsed(tuple(texts.items())) if texts else NOTHING


@lru_cache(maxsize=4096)
def _parsed(items: tuple[tuple[str, Any], ...]) -> Amounts:
    return parse_amounts(dict(items))


def container_needs(container: Object) -> Amounts:
    """Requests of a container; a limit without a request is its request."""
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits"), resources.get("requests")
    if not limits or not requests:
        return amounts_of(requests or limits)
    return {**amounts_of(limits), **amounts_of(requests)}


def pod_needs(pod: Object) -> Amounts:
    """Containers and sidecars together, or the largest init container where that is more, plus
    overhead, plus one pod.

    >>> limits = {"cpu": "1", "nvidia.com/gpu": "2"}
    >>> pod_needs({"spec": {"containers": [{"resources": {"limits": limits}}]}})
    {'cpu': 1000, 'nvidia.com/gpu': 2, 'pods': 1}
    """
    spec = pod["spec"]
    running = [container_needs(container) for container in spec["containers"]]
    if spec.get("initContainers"):
        inits = spec["initContainers"]
        running += [container_needs(container) for container in inits if is_sidecar(container)]
        steady = sum_of(running)
        needs = largest_of(
            [
                steady,
                *(container_needs(container) for container in inits if not is_sidecar(container)),
            ]
        )
    else:
        needs = sum_of(running)
    return {**sum_of([needs, amounts_of(spec.get("overhead"))]), PODS: 1}


def is_sidecar(container: Object) -> bool:
    """An init container that keeps running beside the others."""
    return container.get("restartPolicy") == "Always"


def limit_of(container: Object, resource: str) -> int:
    return amounts_of((container.get("resources") or {}).get("limits")).get(resource, 0)


def untolerated(taints: Iterable[Object], tolerations: Sequence[Object]) -> Object | None:
    """The first taint that keeps the pod off (NoSchedule or NoExecute), or None."""
    for taint in taints:
        if taint["effect"] in ("NoSchedule", "NoExecute") and not any(
            tolerates(toleration, taint) for toleration in tolerations
        ):
            return taint
    return None


def tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())
