"""Keys of etcd, and the objects that a removal must keep."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.kube.control_plane import ControlPlane

OF_THE_CLUSTER = re.compile(r"/registry/(events|leases/kube-[a-z-]+|masterleases)/")
"""Keys that a cluster writes on its own at any time."""


def keys(cluster: ControlPlane) -> set[str]:
    return {each for each in cluster.etcd_keys() if not OF_THE_CLUSTER.match(each)}


def marked(cluster: ControlPlane) -> dict[str, Mapping[str, Any]]:
    """What Fairlead could have written on nodes and namespaces."""
    found: dict[str, Mapping[str, Any]] = {}
    for each in (*cluster.admin.get("nodes"), *cluster.admin.get("namespaces")):
        meta, status = each["metadata"], each.get("status", {})
        found[f"{each['kind']} {meta['name']}"] = {
            "labels": meta.get("labels"),
            "annotations": meta.get("annotations"),
            "finalizers": meta.get("finalizers"),
            "amounts": [status.get("capacity"), status.get("allocatable")],
            "conditions": {one["type"] for one in status.get("conditions") or ()},
        }
    return found
