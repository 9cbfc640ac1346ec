"""What a node's agent answers when a container starts with device ids: its grant, or why there is none.

`pod_uid` of a grant is the kubelet's, by which it names directories and cgroups. Of a static pod the API
server's mirror has another one (`mirror_uid`).
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from fairlead.model.devices.gpu import Grant


class GpuIdentity(StrEnum):
    """How a node's agent learns whose device ids it is asked about
    (docs/spec/gpu-sharing.md#allocation-of-the-right-container).

    `DEFERRED`: when the container starts. `GUARDED`: it must answer before, so all who may be asking are to
    get the same.
    """

    DEFERRED = "deferred"
    GUARDED = "guarded"


class RefusalCode(StrEnum):
    """Status codes of gRPC by which a kubelet is refused."""

    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    UNAVAILABLE = "UNAVAILABLE"


class DeviceRefusal(Struct, frozen=True, gc=False):
    """`reason` is read by the pod's owner. `is_final`: asking again will never help."""

    code: RefusalCode
    reason: str
    is_final: bool = False


class ContainerGrant(Struct, frozen=True, gc=False):
    """The cards of the container that has these ids, each with its MiB known, by index.

    `containers`: more than one where an init container that ends has the ids of an app container; the app
    container first. `pod_units`: what the pod asks in all; None = nobody can say. Where the pods that it may
    be are alike (guarded mode), no pod is named.
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
