"""CDI: the file by which a container runtime learns what comes with a device, one device a file.

The runtime reads it when it creates the container. A runtime without CDI starts the container with nothing,
and says nothing.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlead.model.devices.kubelet import ContainerEdits, MountedFile

KIND: Final = "fairlead.io/gpu"
_VERSION: Final = "0.5.0"
"""The oldest in which all that we say is allowed: what reads a newer one reads it, too."""
_READ_ONLY: Final = ("bind", "ro", "nosuid", "nodev")
_READ_WRITE: Final = ("bind", "rw", "nosuid", "nodev")


def cdi_device(token: str) -> str:
    """The device's name, by which the runtime is asked for it.

    >>> cdi_device("0123456789abcdef")
    'fairlead.io/gpu=alloc-0123456789abcdef'
    """
    return f"{KIND}={_name(token)}"


def cdi_file_name(token: str) -> str:
    """
    >>> cdi_file_name("0123456789abcdef")
    'fairlead.io-gpu-alloc-0123456789abcdef.json'
    """
    return f"{KIND.replace('/', '-')}-{_name(token)}.json"


def render_cdi(token: str, edits: ContainerEdits) -> bytes:
    """The file of one device. Raises ValueError where it would give nothing: runtimes refuse such a file."""
    if not (edits.environment or edits.device_nodes or edits.mounts):
        raise ValueError(f"device `{_name(token)}` gives nothing")
    device = {"name": _name(token), "containerEdits": _edits(edits)}
    return msgspec.json.encode({"cdiVersion": _VERSION, "kind": KIND, "devices": [device]})


def _name(token: str) -> str:
    return f"alloc-{token}"


def _edits(edits: ContainerEdits) -> dict[str, Any]:
    written = {
        "env": [f"{name}={value}" for name, value in edits.environment.items()],
        "deviceNodes": [{"path": path} for path in edits.device_nodes],
        "mounts": [_mount(each) for each in edits.mounts],
    }
    return {key: listed for key, listed in written.items() if listed}


def _mount(mounted: MountedFile) -> dict[str, Any]:
    options = _READ_ONLY if mounted.is_read_only else _READ_WRITE
    return {"hostPath": mounted.host_path, "containerPath": mounted.container_path, "options": options}
