"""A device plugin of Fairlead's with simple answers, beside the real kubelet, on an event loop in a
thread of its own.

A socket's path may have 107 characters, so the kubelet's folder is reached by a short link.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvloop
from tests.kube.control_plane import ControlPlane
from tests.kube.kubelet import kubelet_folder
from tests.waiting import HANG_SECONDS

from fairlead.edge.kubelet.device_plugin import DevicePlugin
from fairlead.edge.kubelet.pod_resources import PodResources
from fairlead.model.devices.granted import DeviceRefusal, RefusalCode
from fairlead.model.devices.kubelet import (
    CdiDevices,
    ContainerEdits,
    HeldDevices,
    MountedFile,
    OfferedDevice,
)
from fairlead.model.refusal import Refusal
from fairlead.rules.devices.ids import preferred
from fairlead.wire.kubelet.checkpoint import parse_checkpoint

RESOURCE = "fairlead.test/part"
IDS = tuple(f"GPU-00000000-0000-0000-0000-000000000001-_-{number}" for number in range(9))
"""The last of them is unhealthy."""
REFUSED_UNITS = 5
REFUSAL = DeviceRefusal(
    RefusalCode.FAILED_PRECONDITION,
    "pod ns/p container c has no GPU placement; it must be scheduled by fairlead-scheduler",
)


class SimpleAnswers:
    """The environment PARTS contains the ids, and the file /etc/parts is mounted. Five ids are
    refused, and so are starts while `is_closed`.

    `starts`: the ids of each start, with the contents of both lists of the kubelet at that time.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.times_registered = 0
        self.is_closed = False
        self.starts: list[
            tuple[tuple[str, ...], tuple[HeldDevices, ...], tuple[HeldDevices, ...]]
        ] = []
        self._resources = PodResources(folder / "pod-resources" / "kubelet.sock")
        self._mounted = folder / "parts"
        self._mounted.write_text("of a card\n", encoding="utf-8")

    def registered(self) -> None:
        self.times_registered += 1

    def preferred(
        self, available: Sequence[str], must_include: Collection[str], size: int
    ) -> Sequence[str]:
        return preferred(available, must_include, size)

    async def allocate(self, ids: Sequence[str]) -> ContainerEdits | CdiDevices | DeviceRefusal:
        if len(ids) == REFUSED_UNITS:
            return REFUSAL
        return ContainerEdits(
            {"PARTS": ",".join(sorted(ids))},
            ("/dev/fuse",),
            (MountedFile("/var/lib/kubelet/parts", "/etc/parts"),),
        )

    async def start(self, ids: Sequence[str]) -> DeviceRefusal | None:
        self.starts.append((tuple(sorted(ids)), await self.reported(), self.noted()))
        return (
            DeviceRefusal(RefusalCode.UNAVAILABLE, "GPU GPU-1 is Unhealthy (XID 79)")
            if self.is_closed
            else None
        )

    async def reported(self) -> tuple[HeldDevices, ...]:
        return await self._resources.list_held()

    def noted(self) -> tuple[HeldDevices, ...]:
        checkpoint = parse_checkpoint(
            (self.folder / "device-plugins" / "kubelet_internal_checkpoint").read_bytes()
        )
        assert not isinstance(checkpoint, Refusal), checkpoint.reason
        return checkpoint

    async def close(self) -> None:
        await self._resources.close()


class WholeCards(SimpleAnswers):
    """Works like NVIDIA's plugin: a container receives the names of its cards, and its runtime
    mounts them.
    """

    def preferred(
        self, available: Sequence[str], must_include: Collection[str], size: int
    ) -> Sequence[str]:
        return [*must_include, *(each for each in available if each not in must_include)][:size]

    async def allocate(self, ids: Sequence[str]) -> ContainerEdits:
        return ContainerEdits({"NVIDIA_VISIBLE_DEVICES": ",".join(sorted(ids))}, (), ())

    async def start(self, ids: Sequence[str]) -> None:
        return None


@contextmanager
def running_plugin(
    cluster: ControlPlane,
    answering: type[SimpleAnswers] = SimpleAnswers,
    *,
    resource: str = RESOURCE,
    devices: Sequence[OfferedDevice] = (
        *(OfferedDevice(each) for each in IDS[:-1]),
        OfferedDevice(IDS[-1], is_healthy=False),
    ),
    endpoint: str = "fairlead-test.sock",
) -> Iterator[tuple[DevicePlugin, SimpleAnswers]]:
    """The plugin for the block, served by the event loop that Fairlead's servers use."""
    with tempfile.TemporaryDirectory(prefix="kubelet-") as short:
        folder = Path(short, "k")
        folder.symlink_to(kubelet_folder(cluster).resolve())
        answers = answering(folder)
        plugin = DevicePlugin(
            folder / "device-plugins", endpoint, resource, answers, needs_start=True
        )
        loop = uvloop.new_event_loop()
        plugin.offer(devices)
        serving = loop.create_task(plugin.run())
        thread = threading.Thread(target=_run, args=(loop, serving, answers))
        thread.start()
        try:
            yield plugin, answers
        finally:
            loop.call_soon_threadsafe(serving.cancel)
            thread.join(HANG_SECONDS)
        assert not thread.is_alive()
        assert not (folder / "device-plugins" / endpoint).exists()


def _run(
    loop: asyncio.AbstractEventLoop, serving: asyncio.Task[None], answers: SimpleAnswers
) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(asyncio.wait([serving]))
        loop.run_until_complete(answers.close())
    finally:
        loop.close()
