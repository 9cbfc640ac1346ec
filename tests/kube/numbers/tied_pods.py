"""Pods that only one node can run, and the names of the mixed company."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.kube.objects import Object

SILENT, CORDONED, NOT_READY_NODE, FAULTY = "silent-1", "cordoned-1", "notready-1", "faulty-1"
MIG_SMALL, MIG_LARGE = "nvidia.com/mig-1g.18gb", "nvidia.com/mig-3g.71gb"
USER = "arena.kubeflow.org/console-user"
GATE = "fairlead.io/quota"


def tied(made: Object, node: str, limits: dict[str, int] | None = None) -> Object:
    """The pod, tied to this node. A pod may be tied to the silent node before that node exists."""
    made["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    if node == SILENT:
        made["spec"]["tolerations"] = [{"operator": "Exists"}]
    if limits:
        made["spec"]["containers"][0]["resources"]["limits"] = {
            name: str(amount) for name, amount in limits.items()
        }
    return made


def utc(ago: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
