"""Workloads of any program as facts about components. Every field may be absent."""

from __future__ import annotations

from typing import Any, Final

from fairlead.model.actions import Manifest
from fairlead.model.installed.component_facts import SeenWorkload

WORKLOAD_KINDS: Final = ("Deployment", "DaemonSet", "StatefulSet")
_RELEASE: Final = "meta.helm.sh/release-name"
_VERSION: Final = "app.kubernetes.io/version"


def parse_seen_workload(manifest: Manifest) -> SeenWorkload:
    """A Deployment, DaemonSet or StatefulSet. Pods of an older spec do not count as ready."""
    meta, spec = manifest["metadata"], manifest.get("spec") or {}
    status = manifest.get("status") or {}
    pod = ((spec.get("template") or {}).get("spec")) or {}
    wanted, ready = _counts(manifest["kind"], spec, status)
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        ready = 0
    return SeenWorkload(
        manifest["kind"],
        str(meta.get("namespace") or ""),
        str(meta["name"]),
        tuple(str(each.get("image") or "") for each in pod.get("containers") or ()),
        wanted,
        ready,
        str((meta.get("annotations") or {}).get(_RELEASE) or ""),
        str((meta.get("labels") or {}).get(_VERSION) or ""),
    )


def _counts(kind: str, spec: Any, status: Any) -> tuple[int, int]:
    if kind == "DaemonSet":
        wanted = status.get("desiredNumberScheduled") or 0
        counts = (status.get("updatedNumberScheduled"), status.get("numberAvailable"))
    else:
        replicas = spec.get("replicas")
        wanted = 1 if replicas is None else replicas
        counts = (status.get("updatedReplicas"), status.get("availableReplicas"))
    return wanted, min(each or 0 for each in counts)
