"""A resource is served, registered and updated, and registered again after anything that a kubelet
does. The bytes are checked by hand.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from grpc import aio
from tests.edge.kubelet.scripted import (
    ENDPOINT,
    RESOURCE,
    ScriptedAnswers,
    ScriptedKubelet,
    running,
)
from tests.edge.kubelet.wire_bytes import Message, Value, packed, unpacked
from tests.waiting import until

from fairlead.edge.kubelet.device_plugin import DevicePlugin
from fairlead.errors import OutsideError
from fairlead.model.devices.granted import DeviceRefusal, RefusalCode
from fairlead.model.devices.kubelet import CdiDevices, ContainerEdits, MountedFile, OfferedDevice

DEVICES = (OfferedDevice("GPU-1-_-0"), OfferedDevice("GPU-1-_-1", is_healthy=False))
REPORTED: list[Message] = [
    [(1, packed((1, "GPU-1-_-0"), (2, "Healthy"))), (1, packed((1, "GPU-1-_-1"), (2, "Unhealthy")))]
]


@pytest.fixture
def answers() -> ScriptedAnswers:
    return ScriptedAnswers()


@pytest.fixture
async def kubelet(tmp_path: Path) -> AsyncIterator[ScriptedKubelet]:
    scripted = ScriptedKubelet(tmp_path)
    await scripted.start()
    yield scripted
    await scripted.stop()


@pytest.fixture
async def served(kubelet: ScriptedKubelet, answers: ScriptedAnswers) -> AsyncIterator[DevicePlugin]:
    resource = DevicePlugin(kubelet.folder, ENDPOINT, RESOURCE, answers, needs_start=True)
    resource.offer(DEVICES)
    async with running(resource):
        await until(lambda: kubelet.lists)
        yield resource


async def test_a_kubelet_gets_the_plugins_endpoint_and_the_whole_list_at_once(
    kubelet: ScriptedKubelet, served: DevicePlugin, answers: ScriptedAnswers
) -> None:
    options = packed((1, 1), (2, 1))
    assert kubelet.registrations == [
        [(1, b"v1beta1"), (2, ENDPOINT.encode()), (3, RESOURCE.encode()), (4, options)]
    ]
    assert kubelet.lists == REPORTED
    assert unpacked(options) == await kubelet.call("GetDevicePluginOptions")
    assert (served.is_watched, served.trouble, answers.times_registered) == (True, "", 1)


async def test_every_stream_receives_a_change_and_nothing_else(
    kubelet: ScriptedKubelet, served: DevicePlugin
) -> None:
    second: list[Message] = []
    watching = asyncio.create_task(kubelet.watch(second))
    await until(lambda: second)
    served.offer(DEVICES)
    for _ in range(5):
        await kubelet.call("GetDevicePluginOptions")
    served.offer(DEVICES[:1])
    await until(lambda: len(kubelet.lists) >= 2 and len(second) >= 2)
    served.offer(())
    await until(lambda: len(kubelet.lists) >= 3 and len(second) >= 3)
    assert kubelet.lists == second == [*REPORTED, REPORTED[0][:1], []]
    watching.cancel()


async def test_a_container_gets_what_the_answer_contains(
    kubelet: ScriptedKubelet, served: DevicePlugin, answers: ScriptedAnswers
) -> None:
    mounts = (MountedFile("/host/a", "/a"), MountedFile("/host/b", "/b", is_read_only=False))
    answers.allocated = lambda: ContainerEdits(
        {"NVIDIA_VISIBLE_DEVICES": "GPU-1"}, ("/dev/nvidia0",), mounts
    )
    (only,) = await kubelet.call("Allocate", (1, packed((1, "GPU-1-_-1"), (1, "GPU-1-_-0"))))
    assert answers.asked == [("allocate", ("GPU-1-_-1", "GPU-1-_-0"))]
    assert _inside(only) == [
        (1, packed((1, "NVIDIA_VISIBLE_DEVICES"), (2, "GPU-1"))),
        (2, packed((1, "/a"), (2, "/host/a"), (3, 1))),
        (2, packed((1, "/b"), (2, "/host/b"))),
        (3, packed((1, "/dev/nvidia0"), (2, "/dev/nvidia0"), (3, "rw"))),
    ]
    answers.allocated = lambda: CdiDevices(("fairlead.io/gpu=alloc-1",))
    both = await kubelet.call("Allocate", (1, packed((1, "a"))), (1, packed((1, "b"))))
    assert [_inside(each) for each in both] == [[(5, packed((1, "fairlead.io/gpu=alloc-1")))]] * 2


@pytest.mark.parametrize("code", list(RefusalCode))
async def test_a_refusal_has_its_code_and_text(
    code: RefusalCode, kubelet: ScriptedKubelet, served: DevicePlugin, answers: ScriptedAnswers
) -> None:
    refusal = DeviceRefusal(code, "placement grants 6 units, container limit is 4")
    answers.allocated = answers.started = lambda: refusal
    for method, field in (("Allocate", (1, packed((1, "a")))), ("PreStartContainer", (1, "a"))):
        with pytest.raises(aio.AioRpcError) as raised:
            await kubelet.call(method, field)
        assert (raised.value.code(), raised.value.details()) == (
            grpc.StatusCode[code],
            refusal.reason,
        )


async def test_an_outside_that_fails_is_reported_as_temporary(
    kubelet: ScriptedKubelet, served: DevicePlugin, answers: ScriptedAnswers
) -> None:
    def fail() -> DeviceRefusal | None:
        raise OutsideError("kubernetes", "the API server does not answer", "wait")

    answers.started = fail
    with pytest.raises(aio.AioRpcError) as raised:
        await kubelet.call("PreStartContainer", (1, "a"))
    assert (raised.value.code(), raised.value.details()) == (
        grpc.StatusCode.UNAVAILABLE,
        "the API server does not answer",
    )
    answers.started = lambda: None
    assert await kubelet.call("PreStartContainer", (1, "a"), (1, "b")) == []
    assert answers.asked == [("start", ("a",)), ("start", ("a", "b"))]


async def test_the_ids_of_few_cards_are_preferred(
    kubelet: ScriptedKubelet, served: DevicePlugin
) -> None:
    asked = packed((1, "a"), (1, "b"), (1, "c"), (2, "b"), (3, 2))
    (only,) = await kubelet.call("GetPreferredAllocation", (1, asked))
    assert _inside(only) == [(1, b"b"), (1, b"c")]


@pytest.mark.parametrize("method", ["Allocate", "PreStartContainer", "GetPreferredAllocation"])
async def test_bytes_that_are_no_message_are_refused(
    kubelet: ScriptedKubelet, served: DevicePlugin, method: str
) -> None:
    with pytest.raises(aio.AioRpcError) as raised:
        await kubelet.call(method, (1, b"\xff\xff"))
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT


async def test_starts_run_beside_each_other_and_end_with_their_request(
    kubelet: ScriptedKubelet, served: DevicePlugin, answers: ScriptedAnswers
) -> None:
    answers.gate = asyncio.Event()
    calls = [asyncio.create_task(kubelet.call("PreStartContainer", (1, each))) for each in "abc"]
    await until(lambda: len(answers.asked) == 3)
    calls[0].cancel()
    await until(lambda: answers.cancelled == 1)
    answers.gate.set()
    assert await asyncio.gather(*calls[1:]) == [[], []]


@pytest.mark.long
async def test_a_kubelet_that_starts_anew_takes_the_resource_again(
    kubelet: ScriptedKubelet, served: DevicePlugin, answers: ScriptedAnswers
) -> None:
    for times, sweeps in ((2, True), (3, False)):
        await kubelet.stop()
        await kubelet.start(sweeps=sweeps)
        await until(lambda times=times: answers.times_registered == times, 30)
        await until(lambda times=times: kubelet.lists == REPORTED * times, 30)


@pytest.mark.long
async def test_a_kubelet_that_accepts_and_never_asks_gets_the_registration_again(
    kubelet: ScriptedKubelet, answers: ScriptedAnswers
) -> None:
    kubelet.is_silent = True
    async with running(
        DevicePlugin(kubelet.folder, ENDPOINT, RESOURCE, answers, silence_seconds=0.1)
    ):
        await until(lambda: len(kubelet.registrations) == 2, 30)
        kubelet.is_silent = False
        await until(lambda: len(kubelet.registrations) == 3 and kubelet.lists == [[]], 30)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await until(lambda: len(kubelet.registrations) == 4)


@pytest.mark.long
async def test_a_socket_that_is_swept_away_comes_back(
    kubelet: ScriptedKubelet, served: DevicePlugin, answers: ScriptedAnswers
) -> None:
    (kubelet.folder / ENDPOINT).unlink()
    await until(lambda: answers.times_registered == 2, 30)
    await until(lambda: kubelet.lists == REPORTED * 2, 30)
    assert await kubelet.call("PreStartContainer", (1, "a")) == []


@pytest.mark.long
async def test_a_kubelet_that_is_away_or_refuses_is_asked_until_it_accepts(
    tmp_path: Path, answers: ScriptedAnswers
) -> None:
    kubelet, folder = ScriptedKubelet(tmp_path), tmp_path
    served = DevicePlugin(folder, ENDPOINT, RESOURCE, answers)
    async with running(served):
        await until(lambda: served.trouble == f"there is no `{folder / 'kubelet.sock'}`")
        kubelet.refusal = "the endpoint is in use"
        await kubelet.start()
        await until(
            lambda: (
                served.trouble == f"the kubelet does not take `{RESOURCE}`: the endpoint is in use"
            ),
            5,
        )
        kubelet.refusal = ""
        await until(lambda: kubelet.lists == [[]] and not served.trouble, 30)
        assert answers.times_registered == 1
        # the options of a plugin that needs no call before a start: a false field is not on the
        # wire
        assert dict(kubelet.registrations[0])[4] == packed((2, 1))
    await kubelet.stop()


async def test_the_end_leaves_no_socket_and_a_dead_ones_socket_is_no_hindrance(
    kubelet: ScriptedKubelet, answers: ScriptedAnswers
) -> None:
    path = kubelet.folder / ENDPOINT
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with running(DevicePlugin(kubelet.folder, ENDPOINT, RESOURCE, answers)):
        await until(lambda: kubelet.lists)
        assert path.exists()
    assert not path.exists()
    assert (kubelet.folder / "kubelet.sock").exists()


async def test_a_directory_that_is_absent_is_reported(
    tmp_path: Path, answers: ScriptedAnswers
) -> None:
    served = DevicePlugin(tmp_path / "absent", ENDPOINT, RESOURCE, answers)
    async with running(served):
        await until(
            lambda: served.trouble == f"cannot listen on `{tmp_path / 'absent' / ENDPOINT}`"
        )


def _inside(field: tuple[int, Value]) -> Message:
    assert field[0] == 1 and isinstance(field[1], bytes)
    return unpacked(field[1])
