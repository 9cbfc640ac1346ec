"""The answer of a node's agent when a container starts with device ids: its grant, or a refusal.

`pod_uid` of a grant is the uid by which the kubelet names directories and cgroups. The mirror of a
static pod in the API server has a different one (`mirror_uid`).
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from fairlead.model.devices.gpu import Grant


class GpuIdentity(StrEnum):
    """How a node's agent finds the container of device ids.

    Specification: docs/spec/gpu-sharing.md#allocation-of-the-right-container.

    `DEFERRED`: when the container starts. `GUARDED`: the agent must answer earlier, so all
    containers that may be meant must get the same.
    """

    DEFERRED = "deferred"
    GUARDED = "guarded"


class RefusalCode(StrEnum):
    """gRPC status codes with which the agent refuses a kubelet's request."""

    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    UNAVAILABLE = "UNAVAILABLE"


class DeviceRefusal(Struct, frozen=True, gc=False):
    """The pod's owner reads `reason`. `is_final`: the same request will always be refused."""

    code: RefusalCode
    reason: str
    is_final: bool = False


class ContainerGrant(Struct, frozen=True, gc=False):
    """The cards of the container that has these ids, by index, each with known MiB.

    `containers`: the app container, and an init container that ends if it has the same ids.
    `pod_units`: the request of the whole pod; None = unknown. In guarded mode no pod is named when
    several equal pods may be meant.
    """

    token: str
    units: int
    cards: tuple[Grant, ...]
    namespace: str = ""
    pod: str = ""
    pod_uid: str = ""
    mirror_uid: str = ""
    containers: tuple[str, ...] = ()
    pod_units: int | None = None
