"""Manifests without the values that only the API server sets."""

from __future__ import annotations

from typing import Any


def without_owner(manifest: dict[str, Any]) -> dict[str, Any]:
    """Removes owner references: only a job that exists has a uid for its companions' references."""
    meta = {key: value for key, value in manifest["metadata"].items() if key != "ownerReferences"}
    return {**manifest, "metadata": meta}
