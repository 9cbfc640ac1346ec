"""Which containers of a node hold which devices, from the kubelet's pod resources socket.

It omits plain init containers, which the kubelet's checkpoint has. The kubelet refuses more than a
hundred requests per second.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from grpc import aio

from fairlead.edge.kubelet.messages import EMPTY, parse_pod_resources
from fairlead.errors import OutsideError
from fairlead.model.devices.kubelet import HeldDevices

ANSWER_SECONDS: Final = 10.0
"""Time limit of an answer; its largest size is 16 MiB.

Specification: docs/spec/telemetry.md#pod-resources-api.
"""
_LIST: Final = "/v1.PodResourcesLister/List"
_LARGEST_ANSWER: Final = 16 * 1024 * 1024
_OPTIONS: Final = [
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", _LARGEST_ANSWER),
    # After a kubelet was away, the client connects again within a second, not after minutes.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


class PodResources:
    """One connection, kept open. `socket`: the kubelet's `pod-resources/kubelet.sock`."""

    def __init__(self, socket: Path, seconds: float = ANSWER_SECONDS) -> None:
        self._socket = socket
        self._seconds = seconds
        self._channel: aio.Channel | None = None

    async def list_held(self) -> tuple[HeldDevices, ...]:
        """All holders.

        Raises OutsideError when the kubelet is away, too slow, or its answer is malformed.
        """
        if self._channel is None:
            self._channel = aio.insecure_channel(f"unix:{self._socket}", options=_OPTIONS)
        ask: aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(_LIST)
        try:
            return parse_pod_resources(await ask(EMPTY, timeout=self._seconds))
        except aio.AioRpcError as error:
            what = (
                f"`{self._socket}` does not list the holders of devices: {error.code().name} "
                f"{error.details()}"
            )
            raise OutsideError("kubelet", what, "look whether the kubelet runs") from error
        except ValueError as error:
            raise OutsideError(
                "kubelet", f"`{self._socket}` answers with what is no list of devices: {error}"
            ) from error

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
