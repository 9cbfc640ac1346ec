"""Which containers of a node hold which devices, as its kubelet tells on its pod-resources socket.

Plain init containers are not in it: the kubelet's checkpoint has them. The kubelet refuses who asks more than
a hundred times a second.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from grpc import aio

from fairlead.edge.kubelet.messages import EMPTY, parse_pod_resources
from fairlead.errors import OutsideError
from fairlead.model.devices.kubelet import HeldDevices

ANSWER_SECONDS: Final = 10.0
"""And the largest answer: docs/spec/telemetry.md#pod-resources-api; a kubelet sends no more than 16 MiB."""
_LIST: Final = "/v1.PodResourcesLister/List"
_LARGEST_ANSWER: Final = 16 * 1024 * 1024
_OPTIONS: Final = [
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", _LARGEST_ANSWER),
    # A kubelet that was away is tried again within a second, not after minutes.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


class PodResources:
    """One connection, kept. `socket`: the kubelet's `pod-resources/kubelet.sock`."""

    def __init__(self, socket: Path, seconds: float = ANSWER_SECONDS) -> None:
        self._socket = socket
        self._seconds = seconds
        self._channel: aio.Channel | None = None

    async def list_held(self) -> tuple[HeldDevices, ...]:
        """All holders. Raises OutsideError when the kubelet is away, too slow, or says what is no list."""
        if self._channel is None:
            self._channel = aio.insecure_channel(f"unix:{self._socket}", options=_OPTIONS)
        ask: aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(_LIST)
        try:
            return parse_pod_resources(await ask(EMPTY, timeout=self._seconds))
        except aio.AioRpcError as error:
            told = f"`{self._socket}` does not say who holds devices: {error.code().name} {error.details()}"
            raise OutsideError("kubelet", told, "look whether the kubelet runs") from error
        except ValueError as error:
            raise OutsideError("kubelet", f"`{self._socket}` answers with what is no list of devices: {error}") from error

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
