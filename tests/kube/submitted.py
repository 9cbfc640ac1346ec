"""Objects that `submit` created, as the API server stores them."""

from __future__ import annotations

import json
from typing import Any

Manifest = dict[str, Any]
GIVEN_BY_SERVER = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
)


def as_asked(manifest: Manifest) -> Manifest:
    """The object without the fields that a server adds."""
    meta = {key: value for key, value in manifest["metadata"].items() if key not in GIVEN_BY_SERVER}
    meta["annotations"] = {
        key: value
        for key, value in meta.get("annotations", {}).items()
        if not key.startswith("deployment.kubernetes.io/")
    }
    spec = manifest.get("spec")
    if manifest["kind"] == "Service":
        ports = [
            {key: value for key, value in port.items() if key != "nodePort"}
            for port in spec["ports"]
        ]
        spec = {
            **{key: value for key, value in spec.items() if key not in ("clusterIP", "clusterIPs")},
            "ports": ports,
        }
    rest = {
        key: value for key, value in manifest.items() if key not in ("status", "spec", "metadata")
    }
    return {**rest, "metadata": meta, "spec": spec}


def one_by_one(printed: str) -> list[Manifest]:
    """The objects that `kubectl -o json` prints: one object, a
    list, or several objects in a row.
    """
    decoder, found, place = json.JSONDecoder(), [], 0
    while place < len(printed.rstrip()):
        value, end = decoder.raw_decode(printed, place)
        found += value["items"] if value["kind"] == "List" else [value]
        place = end + len(printed[end:]) - len(printed[end:].lstrip())
    return found
