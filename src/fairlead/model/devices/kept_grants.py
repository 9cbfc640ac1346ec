"""What a node's GPU agent leaves in files: the limits of one container, and the grants of all.

The container's guard reads the first, the GPU exporter the second.
"""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.devices.gpu import Grant


class GpuLimit(Struct, frozen=True, gc=False):
    """What a container may use of one card.

    `core_percent` 0: no limit. `context_bytes`: what each CUDA context costs, inside the limit.
    """

    uuid: str
    limit_bytes: int
    core_percent: int = 0
    context_bytes: int = 0


class ContainerLimits(Struct, frozen=True, gc=False):
    """`region`: path, inside the container, of the file in which its processes count."""

    gpus: tuple[GpuLimit, ...]
    region: str


class KeptGrant(Struct, frozen=True, gc=False):
    """The grant of one card to one container. `token`: what its set of device ids is known by."""

    pod_uid: str
    namespace: str
    pod: str
    container: str
    grant: Grant
    token: str
