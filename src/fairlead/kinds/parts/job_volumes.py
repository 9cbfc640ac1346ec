"""The volumes of a job and their mounts.

Claims, directories of the node, shared memory, code, files, TensorBoard's logs.

A volume and its mounts must have the same name in three places, so this module makes all of the
names.
"""

from __future__ import annotations

from collections.abc import Iterable
from posixpath import basename, dirname
from typing import TYPE_CHECKING, Final

from fairlead.model.actions import Manifest

if TYPE_CHECKING:
    from fairlead.kinds.parts.job_spec import ConfigFile, JobSpec

_LOGS: Final = "training-logs-volume"


def md5(text: str) -> str:
    import hashlib

    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def volumes(spec: JobSpec, *, has_data: bool) -> list[Manifest]:
    found: list[Manifest] = []
    if _has_shared_memory(spec):
        found.append(
            {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": spec.shared_memory}}
        )
    if has_data:
        found += [
            {"name": claim, "persistentVolumeClaim": {"claimName": claim}}
            for claim in dict.fromkeys(claim for claim, _ in spec.claims)
        ]
        found += [
            {"name": f"training-data-{i}", "hostPath": {"path": host}}
            for i, (host, _) in enumerate(spec.host_dirs)
        ]
    if spec.sync is not None:
        found.append({"name": "code-sync", "emptyDir": {}})
    found += [{"name": name, "configMap": {"name": name}} for name in files_by_map(spec)]
    if spec.tensorboard is not None and log_claim(spec) is None:
        found.append(_log_volume(spec))
    return found


def mounts(spec: JobSpec, *, has_data: bool) -> list[Manifest]:
    found: list[Manifest] = []
    if _has_shared_memory(spec):
        found.append({"name": "dshm", "mountPath": "/dev/shm"})
    if has_data:
        found += [{"name": claim, "mountPath": path} for claim, path in spec.claims]
        found += [
            {"name": f"training-data-{i}", "mountPath": path}
            for i, (_, path) in enumerate(spec.host_dirs)
        ]
    if spec.sync is not None:
        found.append({"name": "code-sync", "mountPath": f"{spec.working_dir.rstrip('/')}/code"})
    for name, files in files_by_map(spec).items():
        found += [
            {"name": name, "mountPath": file.path, "subPath": basename(file.path)} for file in files
        ]
    if spec.tensorboard is not None and log_claim(spec) is None:
        found.append({"name": _LOGS, "mountPath": spec.tensorboard.logdir})
    return found


def _has_shared_memory(spec: JobSpec) -> bool:
    return bool(spec.shared_memory) and not spec.has_gpu_topology


def files_by_map(spec: JobSpec) -> dict[str, list[ConfigFile]]:
    return files_of(spec.name, spec.config_files)


def files_of(owner: str, files: Iterable[ConfigFile]) -> dict[str, list[ConfigFile]]:
    """The config files by the ConfigMap that has them, one per directory, so that equal file
    names do not clash.
    """
    found: dict[str, list[ConfigFile]] = {}
    for file in files:
        digest = md5(dirname(file.path))[:15]
        found.setdefault(f"{owner}-{digest}", []).append(file)
    return found


def config_map_data(files: Iterable[ConfigFile]) -> Manifest:
    """The files as `data` if they are text, else as `binaryData`."""
    import base64

    data: dict[str, str] = {}
    binary: dict[str, str] = {}
    for file in files:
        try:
            data[basename(file.path)] = file.content.decode()
        except UnicodeDecodeError:
            binary[basename(file.path)] = base64.b64encode(file.content).decode()
    return {**({"data": data} if data else {}), **({"binaryData": binary} if binary else {})}


def log_claim(spec: JobSpec) -> tuple[str, str] | None:
    """The claim and path of the mount with TensorBoard's logs; None = the chief's node has them."""
    assert spec.tensorboard is not None
    folder = spec.tensorboard.logdir.rstrip("/") + "/"
    holding = [
        (claim, path) for claim, path in spec.claims if folder.startswith(path.rstrip("/") + "/")
    ]
    return max(holding, key=lambda pair: len(pair[1])) if holding else None


def log_volume_of(spec: JobSpec) -> tuple[Manifest, Manifest]:
    """TensorBoard's volume with the logs, and its mount."""
    assert spec.tensorboard is not None
    found = log_claim(spec)
    if found is None:
        return _log_volume(spec), {"name": _LOGS, "mountPath": spec.tensorboard.logdir}
    claim, path = found
    volume = {"name": claim, "persistentVolumeClaim": {"claimName": claim}}
    return volume, {"name": claim, "mountPath": path}


def _log_volume(spec: JobSpec) -> Manifest:
    """A directory of the node, named by a hash of the job: stable, and almost certainly unique."""
    digest = md5(f"{spec.namespace}/{spec.name}")
    path = f"/arena_logs/training{int(digest[:8], 16)}"
    return {"name": _LOGS, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
