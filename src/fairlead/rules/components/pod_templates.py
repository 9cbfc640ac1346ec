"""What the pods of wanted objects need: images, claims, host names, ports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fairlead.model.actions import Manifest, object_ref


def pod_specs(objects: Iterable[Any]) -> Iterator[Any]:
    """The pod specs of workloads and pods."""
    for each in objects:
        spec = each.get("spec") or {}
        if each.get("kind") == "CronJob":
            spec = (spec.get("jobTemplate") or {}).get("spec") or {}
        template = (spec.get("template") or {}).get("spec") if isinstance(spec, dict) else None
        if each.get("kind") == "Pod":
            template = spec
        if isinstance(template, dict):
            yield template


def images(objects: Iterable[Manifest]) -> list[str]:
    return [
        str(container.get("image") or "")
        for pod in pod_specs(objects)
        for key in ("initContainers", "containers")
        for container in pod.get(key) or ()
    ]


def claimed_classes(objects: Iterable[Any]) -> dict[str, str]:
    """Claims by title, with the storage class that each names; "" = the default."""
    found = {}
    for each in objects:
        if each["kind"] == "PersistentVolumeClaim":
            spec = each.get("spec") or {}
            if not spec.get("volumeName"):
                found[object_ref(each).title] = str(spec.get("storageClassName") or "")
        for template in (each.get("spec") or {}).get("volumeClaimTemplates") or ():
            title = f"claim {template['metadata']['name']} of {object_ref(each).title}"
            found[title] = str((template.get("spec") or {}).get("storageClassName") or "")
    return found


def ingress_hosts(objects: Iterable[Any]) -> dict[str, str]:
    """Host names of Ingresses, with the title of the first that has each."""
    found: dict[str, str] = {}
    for each in objects:
        if each["kind"] == "Ingress":
            for rule in (each.get("spec") or {}).get("rules") or ():
                if rule.get("host"):
                    found.setdefault(str(rule["host"]), object_ref(each).title)
    return found


def host_ports(objects: Iterable[Any]) -> dict[tuple[int, str], str]:
    """Ports of nodes that containers open, by number and protocol, with the title of the first
    workload that has each.
    """
    found: dict[tuple[int, str], str] = {}
    for each in objects:
        for pod in pod_specs([each]):
            for port in pod_host_ports(pod):
                found.setdefault(port, object_ref(each).title)
    return found


def pod_host_ports(pod: Any) -> Iterator[tuple[int, str]]:
    """Of one pod spec.

    >>> list(pod_host_ports({"containers": [{"ports": [{"containerPort": 1, "hostPort": 9400}]}]}))
    [(9400, 'TCP')]
    """
    for container in pod.get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield int(port["hostPort"]), str(port.get("protocol") or "TCP")


def node_ports(objects: Iterable[Any]) -> dict[int, str]:
    """Ports of nodes that Services name, with the title of the first that has each."""
    found: dict[int, str] = {}
    for each in objects:
        if each["kind"] == "Service":
            for port in (each.get("spec") or {}).get("ports") or ():
                if port.get("nodePort"):
                    found.setdefault(int(port["nodePort"]), object_ref(each).title)
    return found
