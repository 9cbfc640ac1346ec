"""A device plugin: serves one resource of a node to its kubelet on a socket.

The socket is in the kubelet's directory.

A kubelet that starts empties that directory and forgets all plugins, and its new socket may have
the inode number of the old one: so the plugin compares the time of creation, and also checks its
own socket. A kubelet that ends closes its stream; from then on the plugin checks often, because a
starting kubelet fails pods whose init containers have devices of a resource that is not yet
registered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import Final, NoReturn, TypeVar

import grpc
from grpc import aio

from fairlead.edge.kubelet.messages import (
    EMPTY,
    Registration,
    parse_allocate,
    parse_preference,
    parse_start,
    render_allocated,
    render_devices,
    render_options,
    render_preferred,
    render_registration,
)
from fairlead.errors import OutsideError
from fairlead.model.devices.granted import DeviceRefusal
from fairlead.model.devices.kubelet import CdiDevices, ContainerEdits, OfferedDevice
from fairlead.ports import DeviceAnswers

KUBELET_SOCKET: Final = "kubelet.sock"
LOOK_SECONDS: Final = 1.0
"""Seconds between checks while a kubelet is connected."""
FAST_CHECK_SECONDS: Final = 0.02
"""Seconds between checks while no kubelet is connected.

After `LONG_AWAY_SECONDS`, `SLOW_CHECK_SECONDS` applies.
"""
SLOW_CHECK_SECONDS: Final = 0.2
LONG_AWAY_SECONDS: Final = 60.0
REGISTER_SECONDS: Final = 5.0
SILENCE_SECONDS: Final = 10.0
"""Seconds within which a kubelet that accepted a resource asks for its devices, or never does."""

_REGISTER: Final = "/v1beta1.Registration/Register"
_SERVICE: Final = "v1beta1.DevicePlugin"
_log: Final = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Asked = TypeVar("Asked")
Stream = aio.ServicerContext[bytes, bytes]
FileIdentity = tuple[int, int, int]


class DevicePlugin:
    """One plugin.

    `endpoint`: the socket's name in `folder`. `needs_start`: the kubelet must call before each
    container start.

    `silence_seconds`: after this time without a request for devices, the plugin registers again.
    """

    def __init__(
        self,
        folder: Path,
        endpoint: str,
        resource: str,
        answers: DeviceAnswers,
        *,
        needs_start: bool = False,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self.resource = resource
        self._path = folder / endpoint
        self._kubelet_path = folder / KUBELET_SOCKET
        self._registration = Registration(endpoint, resource, needs_start)
        self._answers = answers
        self._silence_seconds = silence_seconds
        self._devices = render_devices(())
        self._changed = asyncio.Event()
        self._closed = asyncio.Event()
        self._away_since = 0.0
        self._server: aio.Server | None = None
        self._socket: FileIdentity | None = None
        self._kubelet: FileIdentity | None = None
        self._streams = 0
        self._spoken_at = 0.0
        self._trouble = ""

    @property
    def is_watched(self) -> bool:
        """Whether a kubelet watches the devices now, and gets their changes."""
        return self._streams > 0

    @property
    def trouble(self) -> str:
        """Why no kubelet has accepted the resource; "" = one has."""
        return self._trouble

    def offer(self, devices: Iterable[OfferedDevice]) -> None:
        """Sets all devices. Nothing is sent if they are the same as before."""
        rendered = render_devices(devices)
        if rendered == self._devices:
            return
        self._devices = rendered
        self._changed.set()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Serves and stays registered until cancelled, and leaves no socket behind."""
        self._away_since = asyncio.get_running_loop().time()
        try:
            while True:
                try:
                    await self._serve()
                    await self._register()
                    await self._until_forgotten()
                except OutsideError as failed:
                    self._report(failed)
                    await self._pause()
        finally:
            await self._end()

    async def _serve(self) -> None:
        """Starts the server, then registers: the kubelet connects at once, and only once."""
        if self._server is not None and _identity(self._path) == self._socket:
            return
        await self._end()
        server = aio.server()
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(_SERVICE, self._handlers()),)
        )
        try:
            server.add_insecure_port(f"unix:{self._path}")
        except RuntimeError as error:
            raise OutsideError(
                "kubelet",
                f"cannot listen on `{self._path}`",
                "look whether the kubelet's directory is mounted",
            ) from error
        self._server = server
        await server.start()
        self._socket = _identity(self._path)

    async def _register(self) -> None:
        self._kubelet = _identity(self._kubelet_path)
        if self._kubelet is None:
            raise OutsideError(
                "kubelet",
                f"there is no `{self._kubelet_path}`",
                "look whether a kubelet runs and has this directory",
            )
        async with aio.insecure_channel(
            f"unix:{self._kubelet_path}", options=[("grpc.default_authority", "localhost")]
        ) as channel:
            register: aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_REGISTER)
            try:
                await register(render_registration(self._registration), timeout=REGISTER_SECONDS)
            except aio.AioRpcError as error:
                raise OutsideError(
                    "kubelet", f"the kubelet does not take `{self.resource}`: {error.details()}"
                ) from error
        self._spoken_at = asyncio.get_running_loop().time()
        self._trouble = ""
        _log.info("the kubelet has taken %s", self.resource)
        self._answers.registered()

    async def _until_forgotten(self) -> None:
        now = asyncio.get_running_loop().time
        while (
            _identity(self._path) == self._socket and _identity(self._kubelet_path) == self._kubelet
        ):
            if not self._streams and now() - self._spoken_at > self._silence_seconds:
                return
            await self._pause()

    async def _pause(self) -> None:
        if not self._streams:
            is_long = asyncio.get_running_loop().time() - self._away_since > LONG_AWAY_SECONDS
            await asyncio.sleep(SLOW_CHECK_SECONDS if is_long else FAST_CHECK_SECONDS)
            return
        self._closed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._closed.wait()

    async def _end(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop(None)  # this removes its socket too

    def _report(self, failed: OutsideError) -> None:
        if self._trouble != failed.what:
            _log.warning("%s", failed.log_line)
        self._trouble = failed.what

    def _handlers(self) -> dict[str, grpc.RpcMethodHandler[bytes, bytes]]:
        unary = grpc.unary_unary_rpc_method_handler
        return {
            "GetDevicePluginOptions": unary(self._options),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(self._watch),
            "GetPreferredAllocation": unary(self._prefer),
            "Allocate": unary(self._allocate),
            "PreStartContainer": unary(self._start),
        }

    async def _options(self, _request: bytes, _stream: Stream) -> bytes:
        return render_options(self._registration.needs_start)

    async def _watch(self, _request: bytes, _stream: Stream) -> AsyncIterator[bytes]:
        self._streams += 1
        try:
            while True:
                changed = self._changed
                yield self._devices
                await changed.wait()
        finally:
            self._streams -= 1
            self._spoken_at = self._away_since = asyncio.get_running_loop().time()
            self._closed.set()

    async def _prefer(self, request: bytes, stream: Stream) -> bytes:
        asked = await _parsed(parse_preference, request, stream)
        return render_preferred(
            [
                self._answers.preferred(each.available, each.must_include, each.size)
                for each in asked
            ]
        )

    async def _allocate(self, request: bytes, stream: Stream) -> bytes:
        given: list[ContainerEdits | CdiDevices] = []
        for ids in await _parsed(parse_allocate, request, stream):
            answer = await _answered(self._answers.allocate(ids), stream)
            if isinstance(answer, DeviceRefusal):
                await _refuse(answer, stream)
            given.append(answer)
        return render_allocated(given)

    async def _start(self, request: bytes, stream: Stream) -> bytes:
        ids = await _parsed(parse_start, request, stream)
        refusal = await _answered(self._answers.start(ids), stream)
        if refusal is not None:
            await _refuse(refusal, stream)
        return EMPTY


async def _parsed(parse: Callable[[bytes], Asked], request: bytes, stream: Stream) -> Asked:
    try:
        return parse(request)
    except ValueError as error:
        await stream.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))


async def _answered(asked: Awaitable[Answer], stream: Stream) -> Answer:
    try:
        return await asked
    except OutsideError as failed:
        await stream.abort(grpc.StatusCode.UNAVAILABLE, failed.what)


async def _refuse(refusal: DeviceRefusal, stream: Stream) -> NoReturn:
    await stream.abort(grpc.StatusCode[refusal.code], refusal.reason)


def _identity(path: Path) -> FileIdentity | None:
    """What distinguishes a file from a later one of the same name; None = there is no file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutsideError("disk", f"cannot look at `{path}`: {error.strerror}") from error
    return found.st_dev, found.st_ino, found.st_ctime_ns
