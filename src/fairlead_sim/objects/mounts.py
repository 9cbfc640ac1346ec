"""Which claims a pod mounts."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def mounted_claims(pod: Object) -> list[str]:
    """The claims that the pod's volumes name."""
    found = []
    for volume in pod["spec"].get("volumes") or ():
        claim = isinstance(volume, dict) and volume.get("persistentVolumeClaim")
        if isinstance(claim, dict) and claim.get("claimName"):
            found.append(str(claim["claimName"]))
    return found
