"""Manifests without what only the API server knows."""

from __future__ import annotations

from typing import Any


def without_owner(manifest: dict[str, Any]) -> dict[str, Any]:
    """Only a created job has a uid that its companions can name."""
    meta = {key: value for key, value in manifest["metadata"].items() if key != "ownerReferences"}
    return {**manifest, "metadata": meta}
