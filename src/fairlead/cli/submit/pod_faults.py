"""Refuses objects whose pods no API server accepts, or no node can take.

No node takes a pod that requests more of a shared GPU than any GPU has.

It reads the objects, not the flags, so it holds for every kind, for serving, for crons and for
files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.frame.values import invalid
from fairlead.wire.names import GPU_CORE, GPU_MEMORY

if TYPE_CHECKING:
    from fairlead.errors import UserError
    from fairlead.model.actions import Manifest

_HINT: Final = (
    "`--gpus N` asks for whole GPUs; `--gpumemory N`, with `--gpucore PERCENT` or without, "
    f"for a part of one; in a file these are limits: nvidia.com/gpu, {GPU_MEMORY} and {GPU_CORE}"
)
_PARTS: Final = ("containers", "initContainers")


def check_shares(objects: Sequence[Manifest]) -> None:
    """Raises UserError for the first pod that no node can take."""
    for obj in objects:
        for pod in _pods_in(obj):
            if (why := _fault(pod)) is not None:
                raise why


def check_mounts(objects: Sequence[Manifest]) -> None:
    """Raises UserError for a container that sees two volumes at one path,
    which the API server refuses.
    """
    for pod in (pod for obj in objects for pod in _pods_in(obj)):
        for container in _containers(pod["spec"]):
            seen: dict[str, str] = {}
            for mount in container.get("volumeMounts") or ():
                path = mount["mountPath"].rstrip("/") or "/"
                if path in seen:
                    what = f"{path} is the place of two volumes: {seen[path]} and {mount['name']}"
                    raise invalid(
                        what,
                        (
                            "each --data, --data-dir, --config-file and "
                            "/dev/shm has a path of its own"
                        ),
                    )
                seen[path] = mount["name"]


def _pods_in(value: Any) -> Iterator[dict[str, Any]]:
    """Pods and pod templates, however deep: those of a Cron stand in the workload that it makes."""
    if isinstance(value, dict):
        spec = value.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield value
        else:
            for each in value.values():
                yield from _pods_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _pods_in(each)


def _fault(pod: dict[str, Any]) -> UserError | None:
    if not _names_shares(pod["spec"]):
        return None
    import msgspec

    from fairlead.rules.holding.need import gpu_need, units_for_bytes
    from fairlead.wire.kube.objects import WirePod, parse_pod

    metadata = {**(pod.get("metadata") or {}), "name": "pod", "namespace": "", "uid": ""}
    try:
        read = parse_pod(
            msgspec.json.decode(
                msgspec.json.encode({"metadata": metadata, "spec": pod["spec"]}), type=WirePod
            )
        )
    except (msgspec.MsgspecError, ValueError, TypeError):
        return None  # the API server's error is more precise
    need = gpu_need(read)
    fault = need.fault or units_for_bytes(need.units)
    return (
        invalid(f"a pod {fault}" if fault.startswith("asks") else fault, _HINT) if fault else None
    )


def _containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for part in _PARTS for each in spec.get(part) or () if isinstance(each, dict)]


def _names_shares(spec: dict[str, Any]) -> bool:
    limits = [(each.get("resources") or {}).get("limits") or {} for each in _containers(spec)]
    return any(name in each for each in limits for name in (GPU_MEMORY, GPU_CORE))
