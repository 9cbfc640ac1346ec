"""The CDI file of one container: devices, mounts and variables that the runtime adds to it.

There is one file per token. Two files with the same device name would be a conflict, and the
runtime would refuse both.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlead.model.devices.kubelet import ContainerEdits, MountedFile

CDI_KIND: Final = "fairlead.io/gpu"
CDI_VERSION: Final = "0.5.0"
"""The version of the CDI specification; containerd 1.7, containerd 2 and CRI-O support it."""
_PREFIX: Final = "fairlead.io-gpu_"


def device_name(token: str) -> str:
    """The device name in the agent's answer to the kubelet.

    >>> device_name("0123456789abcdef")
    'fairlead.io/gpu=alloc-0123456789abcdef'
    """
    return f"{CDI_KIND}=alloc-{token}"


def cdi_file_name(token: str) -> str:
    """The name of the file in the CDI directory.

    >>> cdi_file_name("0123456789abcdef")
    'fairlead.io-gpu_0123456789abcdef.json'
    """
    return f"{_PREFIX}{token}.json"


def token_of_file(name: str) -> str:
    """The token of a file of Fairlead's agent; "" for any other file.

    >>> token_of_file("fairlead.io-gpu_0123456789abcdef.json"), token_of_file("nvidia.yaml")
    ('0123456789abcdef', '')
    """
    return (
        name.removeprefix(_PREFIX).removesuffix(".json")
        if name.startswith(_PREFIX) and name.endswith(".json")
        else ""
    )


def render_cdi(token: str, edits: ContainerEdits) -> bytes:
    """The text of the file."""
    container: dict[str, Any] = {}
    if edits.environment:
        container["env"] = [f"{name}={text}" for name, text in edits.environment.items()]
    if edits.device_nodes:
        container["deviceNodes"] = [{"path": path} for path in edits.device_nodes]
    if edits.mounts:
        container["mounts"] = [_mount(each) for each in edits.mounts]
    device = {"name": f"alloc-{token}", "containerEdits": container}
    return msgspec.json.encode({"cdiVersion": CDI_VERSION, "kind": CDI_KIND, "devices": [device]})


def _mount(mounted: MountedFile) -> dict[str, Any]:
    options = ["bind", "nosuid", "nodev", "ro" if mounted.is_read_only else "rw"]
    return {
        "hostPath": mounted.host_path,
        "containerPath": mounted.container_path,
        "options": options,
    }
