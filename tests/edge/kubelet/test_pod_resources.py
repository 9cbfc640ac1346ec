"""The holders of devices, from a kubelet: one entry per container and resource; and a kubelet that
is away, slow or faulty.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from tests.edge.kubelet.pod_resources import answering, container, devices
from tests.edge.kubelet.wire_bytes import packed
from tests.waiting import until

from fairlead.edge.kubelet.pod_resources import PodResources
from fairlead.errors import OutsideError
from fairlead.model.devices.kubelet import HeldDevices

MEMORY, WHOLE = "aliyun.com/gpu-mem", "nvidia.com/gpu"


ANSWER = packed(
    (
        1,
        packed(
            (1, "a"),
            (2, "ml"),
            (
                3,
                container(
                    "app",
                    devices(MEMORY, "G-2"),
                    devices(WHOLE, "G"),
                    devices(MEMORY, "G-1", "G-0", "G-2"),
                ),
            ),
        ),
    ),
    (
        1,
        packed(
            (1, "b"),
            (2, "ml"),
            (3, container("idle")),
            (3, container("side", devices(MEMORY, "G-3"))),
        ),
    ),
)
HELD = (
    HeldDevices(MEMORY, ("G-0", "G-1", "G-2"), "app", "ml", "a"),
    HeldDevices(WHOLE, ("G",), "app", "ml", "a"),
    HeldDevices(MEMORY, ("G-3",), "side", "ml", "b"),
)


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncIterator[PodResources]:
    resources = PodResources(tmp_path / "kubelet.sock", 0.3)
    yield resources
    await resources.close()


async def test_ids_of_one_container_and_resource_are_one_entry(
    tmp_path: Path, asked: PodResources
) -> None:
    async with answering(tmp_path / "kubelet.sock", ANSWER):
        assert await asked.list_held() == HELD


async def test_nothing_is_held(tmp_path: Path, asked: PodResources) -> None:
    async with answering(tmp_path / "kubelet.sock", b""):
        assert await asked.list_held() == ()


async def test_a_list_longer_than_grpc_takes_by_itself_is_read(
    tmp_path: Path, asked: PodResources
) -> None:
    async with answering(tmp_path / "kubelet.sock", ANSWER + packed((9, b"x" * 5 * 1024 * 1024))):
        assert await asked.list_held() == HELD


async def test_a_kubelet_that_is_away_and_comes_back(tmp_path: Path, asked: PodResources) -> None:
    for _ in range(2):
        with pytest.raises(OutsideError, match="UNAVAILABLE"):
            await asked.list_held()
        async with answering(tmp_path / "kubelet.sock", ANSWER):
            await until(lambda: _is_reported(asked), 30)


async def test_one_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, asked: PodResources
) -> None:
    async with answering(tmp_path / "kubelet.sock", b"", is_slow=True):
        with pytest.raises(OutsideError, match="DEADLINE_EXCEEDED"):
            await asked.list_held()


async def test_one_that_refuses_is_quoted(tmp_path: Path, asked: PodResources) -> None:
    async with answering(tmp_path / "kubelet.sock", b"", grpc.StatusCode.RESOURCE_EXHAUSTED):
        with pytest.raises(OutsideError) as caught:
            await asked.list_held()
        assert caught.value.what == (
            f"`{tmp_path}/kubelet.sock` does not list the holders of devices: RESOURCE_EXHAUSTED "
            "rejected by rate limit"
        )


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\xff\xff\xff",
        ANSWER[:-3],
        packed((1, packed((1, b"\xff"), (2, "ml")))),
        b"HTTP/1.1 200 OK",
    ],
)
async def test_what_is_no_list_is_an_error(
    tmp_path: Path, asked: PodResources, nonsense: bytes
) -> None:
    async with answering(tmp_path / "kubelet.sock", nonsense):
        with pytest.raises(OutsideError) as caught:
            await asked.list_held()
    sentence = f"`{tmp_path}/kubelet.sock` answers with what is no list of devices: "
    assert caught.value.what.startswith(sentence)


async def test_a_holder_without_a_name_is_an_error(tmp_path: Path, asked: PodResources) -> None:
    nameless = packed(
        (1, packed((1, ""), (2, "ml"), (3, container("app", devices(MEMORY, "G-1")))))
    )
    async with answering(tmp_path / "kubelet.sock", nameless):
        with pytest.raises(OutsideError) as caught:
            await asked.list_held()
        assert caught.value.what == (
            f"`{tmp_path}/kubelet.sock` answers with what is no list of devices: a holder of "
            "devices has no name"
        )


async def _is_reported(asked: PodResources) -> bool:
    try:
        return await asked.list_held() == HELD
    except OutsideError:
        return False
