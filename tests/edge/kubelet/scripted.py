"""A kubelet that a test controls: it accepts registrations, connects back to the plugin, and can
restart. Also the answers of a plugin.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
from grpc import aio
from tests.edge.kubelet.wire_bytes import Message, packed, unpacked

from fairlead.edge.kubelet.device_plugin import DevicePlugin
from fairlead.model.devices.granted import DeviceRefusal
from fairlead.model.devices.kubelet import CdiDevices, ContainerEdits

RESOURCE = "aliyun.com/gpu-mem"
ENDPOINT = "fairlead-gpu-mem.sock"


class ScriptedKubelet:
    """`refusal`: the error for every registration. `is_silent`: the kubelet accepts a resource but
    never asks for its devices.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registrations: list[Message] = []
        self.lists: list[Message] = []
        self.refusal = ""
        self.is_silent = False
        self._server: aio.Server | None = None
        self._channel: aio.Channel | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self, *, sweeps: bool = True) -> None:
        """Like a real kubelet, removes every socket of the directory first."""
        for path in self.folder.iterdir() if sweeps else ():
            path.unlink()
        handlers = {"Register": grpc.unary_unary_rpc_method_handler(self._register)}
        self._server = aio.server()
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v1beta1.Registration", handlers),)
        )
        self._server.add_insecure_port(f"unix:{self.folder / 'kubelet.sock'}")
        await self._server.start()

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        if self._channel is not None:
            await self._channel.close()
        if self._server is not None:
            await self._server.stop(None)
        self._server = self._channel = self._watching = None

    async def call(self, method: str, *fields: tuple[int, str | bytes | int]) -> Message:
        """Calls the plugin that was registered last."""
        assert self._channel is not None
        ask: aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(
            f"/v1beta1.DevicePlugin/{method}"
        )
        return unpacked(await ask(packed(*fields), timeout=10))

    async def watch(self, seen: list[Message]) -> None:
        assert self._channel is not None
        listed: aio.UnaryStreamMultiCallable[bytes, bytes] = self._channel.unary_stream(
            "/v1beta1.DevicePlugin/ListAndWatch"
        )
        async for raw in listed(b""):
            seen.append(unpacked(raw))

    async def _register(self, request: bytes, context: aio.ServicerContext[bytes, bytes]) -> bytes:
        if self.refusal:
            await context.abort(grpc.StatusCode.UNKNOWN, self.refusal)
        reported = unpacked(request)
        self.registrations.append(reported)
        if self.is_silent:
            return b""
        endpoint = dict(reported)[2]
        assert isinstance(endpoint, bytes)
        self._channel = aio.insecure_channel(
            f"unix:{self.folder / endpoint.decode()}",
            options=[("grpc.default_authority", "localhost")],
        )
        self._watching = asyncio.create_task(self.watch(self.lists))
        return b""


class ScriptedAnswers:
    """`allocated` and `started` answer when they are called with the ids; `asked` records the
    calls.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.times_registered = 0
        self.allocated: Callable[[], ContainerEdits | CdiDevices | DeviceRefusal] = ContainerEdits
        self.started: Callable[[], DeviceRefusal | None] = lambda: None
        self.gate: asyncio.Event | None = None
        self.cancelled = 0

    def registered(self) -> None:
        self.times_registered += 1

    def preferred(
        self, available: Sequence[str], must_include: Collection[str], size: int
    ) -> Sequence[str]:
        return [*must_include, *reversed(available)][:size]

    async def allocate(self, ids: Sequence[str]) -> ContainerEdits | CdiDevices | DeviceRefusal:
        self.asked.append(("allocate", tuple(ids)))
        return self.allocated()

    async def start(self, ids: Sequence[str]) -> DeviceRefusal | None:
        self.asked.append(("start", tuple(ids)))
        try:
            if self.gate is not None:
                await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.started()


@asynccontextmanager
async def running(served: DevicePlugin) -> AsyncIterator[None]:
    """The resource is served during the block."""
    task = asyncio.create_task(served.run())
    try:
        yield
    finally:
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError), ended
