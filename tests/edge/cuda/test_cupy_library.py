"""The calls to cupy, on a simulated cupy: the direction of copies, the kernels that are started,
the properties of a card.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead.edge.cuda.array_library import Launch
from fairlead.edge.cuda.cupy_library import CupyLibrary
from fairlead.model.devices.gpu_chip import Chip


class OpenAlready(Exception):
    status = 704


class PlayedArray:
    def __init__(self, where: str) -> None:
        self.data, self.ctypes = SimpleNamespace(ptr=where), SimpleNamespace(data=where)


class PlayedCupy:
    """A card per index; arrays know on which card they are."""

    def __init__(self, cards: int) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.on = -1
        runtime = SimpleNamespace(
            getDeviceCount=lambda: cards,
            getDeviceProperties=self._properties,
            deviceGetAttribute=lambda attribute, index: {36: 5_001_000, 37: 256}[attribute],
            deviceCanAccessPeer=lambda card, other: 1,
            deviceEnablePeerAccess=self._enable,
            CUDARuntimeError=OpenAlready,
            memcpyAsync=lambda to, source, size, kind, stream: self.asked.append(
                (source, to, size, kind)
            ),
            memcpyPeerAsync=lambda to, to_card, source, card, size, stream: self.asked.append(
                (source, to, size, (card, to_card))
            ),
        )
        stream = SimpleNamespace(ptr=7, synchronize=lambda: self.asked.append(("waited", self.on)))
        self.cuda = SimpleNamespace(
            Device=self._device, get_current_stream=lambda: stream, runtime=runtime
        )
        self.uint64 = self.int32 = int

    def _properties(self, index: int) -> dict[str, Any]:
        sizes = {
            "maxThreadsPerMultiProcessor": 1024,
            "multiProcessorCount": 40,
            "sharedMemPerMultiprocessor": 65536,
        }
        return {"name": b"Tesla T4", "major": 7, "minor": 5, "uuid": bytes(range(16)), **sizes}

    def _device(self, index: int) -> Any:
        self.on = index
        return nullcontext()

    def _enable(self, other: int) -> None:
        self.asked.append(("opened", self.on, other))
        raise OpenAlready

    def zeros(self, size: int, dtype: str) -> PlayedArray:
        return PlayedArray(f"card {self.on}")

    def RawKernel(self, source: str, name: str) -> Any:
        return lambda blocks, threads, arguments: self.asked.append(
            (name, blocks, threads, arguments[-1], source)
        )


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> PlayedCupy:
    return install(monkeypatch, 2)


def install(monkeypatch: pytest.MonkeyPatch, cards: int) -> PlayedCupy:
    played = PlayedCupy(cards)
    monkeypatch.setitem(sys.modules, "cupy", played)  # type: ignore[arg-type]
    monkeypatch.setitem(
        sys.modules,
        "cupyx",
        SimpleNamespace(empty_pinned=lambda shape, dtype: PlayedArray("pinned")),
    )  # type: ignore[arg-type]
    return played


def made(launch: Launch | None) -> Launch:
    assert launch is not None
    return launch


def test_a_card_is_what_cuda_reports(cupy: PlayedCupy) -> None:
    card = CupyLibrary().cards()[1]
    assert (card.index, card.model, card.uuid) == (
        1,
        "Tesla T4",
        "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f",
    )
    assert card.chip == Chip(1024, 40, 65536, (7, 5), 256, 5_001_000)


@pytest.mark.parametrize(
    ("field", "copy", "worth"),
    [
        (1005, ("card 0", "card 0", 100, 3), 200),
        (1009, ("card 0", "pinned", 100, 2), 100),
        (1010, ("pinned", "card 0", 100, 1), 100),
        (1011, ("card 0", "card 1", 100, (0, 1)), 100),
        (1012, ("card 1", "card 0", 100, (1, 0)), 100),
    ],
)
def test_copies_go_the_way_that_the_field_counts(
    field: int, copy: tuple[Any, ...], worth: int, cupy: PlayedCupy
) -> None:
    launch = made(CupyLibrary().copies(0, field, 100))
    launch.run()
    assert cupy.asked[-1] == copy and launch.amount == worth
    assert (("opened", 0, 1) in cupy.asked) is (field in (1011, 1012)), (
        "else it goes through the machine's memory"
    )


def test_a_card_alone_has_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, 1)
    assert CupyLibrary().copies(0, 1011, 100) is None


def test_a_kernel_that_waits_has_the_shape_that_is_asked(cupy: PlayedCupy) -> None:
    library = CupyLibrary()
    assert library.spin(1, 0.025, 20, 1)
    library.wait(1)
    assert cupy.asked[0][:4] == ("spin", (20,), (1,), 25_000_000) and cupy.asked[1] == ("waited", 1)


@pytest.mark.parametrize(
    ("bits", "instruction", "per_instruction"),
    [(64, "fma.rn.f64", 1), (32, "fma.rn.f32", 1), (16, "fma.rn.f16x2", 2)],
)
def test_sums_are_multiply_adds_of_that_width(
    bits: int, instruction: str, per_instruction: int, cupy: PlayedCupy
) -> None:
    launch = made(CupyLibrary().arithmetic(0, bits))
    launch.run()
    name, (blocks,), (threads,), rounds, source = cupy.asked[-1]
    assert name == "sums" and "@" not in source
    chains = source.count(instruction)
    assert launch.amount == 2 * per_instruction * chains * rounds * blocks * threads and chains == 4
