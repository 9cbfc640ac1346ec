"""Cards at work through a simulated array library: which work they get, for how long, and the
results.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.waiting import HANG_SECONDS

from fairlead.edge.cuda.array_library import Launch, find_array_library
from fairlead.edge.cuda.backend import CudaBackend
from fairlead.errors import OutsideError
from fairlead.model.devices.gpu_chip import CHIPS, LoadCard
from fairlead.model.devices.gpu_load import LoadTest, WorkDone


class PlayedLibrary:
    """Cards on a clock of the test's own: a launch takes `seconds_each`, a wait ends when all work
    is done.
    """

    name = "played"

    def __init__(
        self,
        model: str = "Tesla T4",
        count: int = 1,
        *,
        has_sums: bool = True,
        shapes: bool = True,
        seconds_each: float = 0.01,
    ) -> None:
        self._cards = tuple(
            LoadCard(index, f"GPU-{index}", model, CHIPS[model]) for index in range(count)
        )
        self._has_sums, self._shapes, self._each = has_sums, shapes, seconds_each
        self.now = 0.0
        self.pending = 0.0
        self.made: list[tuple[object, ...]] = []
        self.spun: list[tuple[float, int, int]] = []
        self.launched: list[int] = []
        self.slept = 0.0
        self.threads: set[tuple[int, str]] = set()
        self.fault: Exception | None = None

    def cards(self) -> Sequence[LoadCard]:
        return self._cards

    def _launch(self, card: int, amount: float, batch: int) -> Launch:
        def run() -> None:
            if self.fault is not None:
                raise self.fault
            self.launched.append(card)
            self.threads.add((card, threading.current_thread().name))
            self.pending += self._each

        return Launch(run, amount, batch)

    def matrices(self, card: int, bits: int, size: int) -> Launch:
        self.made.append(("matrices", bits, size))
        return self._launch(card, 2.0 * size**3, 100)

    def arithmetic(self, card: int, bits: int) -> Launch | None:
        self.made.append(("sums", bits))
        return self._launch(card, 1e9, 10) if self._has_sums else None

    def copies(self, card: int, field: int, size: int) -> Launch | None:
        self.made.append(("copies", field, size))
        return (
            None
            if field in (1011, 1012)
            else self._launch(card, 2.0 * size if field == 1005 else size, 10)
        )

    def spin(self, card: int, seconds: float, blocks: int, threads: int) -> bool:
        if not self._shapes and (blocks, threads) != (1, 1):
            return False
        self.spun.append((round(seconds, 3), blocks, threads))
        self.pending += seconds
        return True

    def wait(self, card: int) -> None:
        self.now += self.pending
        self.pending = 0.0

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.now += seconds

    def backend(self, *, uses_matrices: bool = False) -> CudaBackend:
        return CudaBackend(
            self, uses_matrices=uses_matrices, clock=lambda: self.now, sleep=self.sleep
        )


def work(
    library: PlayedLibrary,
    field: int,
    ratio: float = 1.0,
    seconds: float = 1.0,
    *,
    uses_matrices: bool = False,
) -> WorkDone:
    backend = library.backend(uses_matrices=uses_matrices)
    try:
        (done,) = backend.work(backend.cards(), LoadTest(field, 30.0), ratio, seconds)
    finally:
        backend.end()
    return done


def test_tensor_cores_get_matrices_of_8192_a_hundred_per_check() -> None:
    library = PlayedLibrary()
    done = work(library, 1004, seconds=1.5)
    assert library.made == [("matrices", 16, 8192)]
    assert len(library.launched) == 200, "whole checks only"
    assert done.seconds == pytest.approx(2.0) and done.flops == pytest.approx(200 * 2 * 8192**3)
    assert done.generated is None


@pytest.mark.parametrize(("field", "bits"), [(1006, 64), (1007, 32), (1008, 16)])
def test_arithmetic_is_sums_or_matrices_of_4096(field: int, bits: int) -> None:
    sums, matrices, without = PlayedLibrary(), PlayedLibrary(), PlayedLibrary(has_sums=False)
    work(sums, field)
    work(matrices, field, uses_matrices=True)
    work(without, field)
    assert sums.made == [("sums", bits)] and matrices.made == [("matrices", bits, 4096)]
    assert without.made == [("sums", bits), ("matrices", bits, 4096)]


@pytest.mark.parametrize(
    ("model", "overhead"),
    [("NVIDIA H200", 1.08), ("NVIDIA A100-SXM4-80GB", 1.123), ("Tesla T4", 1.123)],
)
@pytest.mark.parametrize("field", [1009, 1010])
def test_copies_over_pcie_count_the_protocols_bytes(
    model: str, overhead: float, field: int
) -> None:
    library = PlayedLibrary(model)
    done = work(library, field)
    assert library.made == [("copies", field, 100_000_000)]
    assert done.generated == pytest.approx(100_000_000 / 0.01 * overhead)


def test_copies_within_a_card_are_a_part_of_its_bandwidth() -> None:
    done = work(PlayedLibrary("Tesla T4"), 1005)
    assert done.generated == pytest.approx(200_000_000 / 0.01 / 320_064_000_000)


def test_a_duty_cycle() -> None:
    library = PlayedLibrary()
    done = work(library, 1001, 0.25, 1.0)
    assert set(library.spun) == {(0.025, 1, 1)} and len(library.spun) in (10, 11)
    assert library.slept == pytest.approx(0.75, abs=0.01) and done.generated == pytest.approx(0.25)


def test_a_part_of_the_sms_gets_a_block_of_one_thread_each() -> None:
    library = PlayedLibrary("Tesla T4")
    done = work(library, 1002, 0.5, 0.2)
    assert {shape[1:] for shape in library.spun} == {(20, 1)} and done.generated == 0.5


@pytest.mark.parametrize(
    ("ratio", "shape"),
    [(0.01, (132, 32)), (0.25, (132, 512)), (0.5, (132, 1024)), (1.0, (264, 1024))],
)
def test_threads_fill_every_sm(ratio: float, shape: tuple[int, int]) -> None:
    library = PlayedLibrary("NVIDIA H200")
    done = work(library, 1003, ratio, 0.1)
    assert library.spun[0][1:] == shape
    assert done.generated == pytest.approx(shape[0] * shape[1] / (132 * 2048))


def test_nothing_of_a_card_is_nothing() -> None:
    library = PlayedLibrary()
    assert work(library, 1001, 0.0, 0.5).generated == 0.0 and library.spun == []


def test_what_a_library_cannot_do_is_reported() -> None:
    with pytest.raises(OutsideError, match=r"\b1002\b.*\bcupy\b.*\bplayed\b"):
        work(PlayedLibrary(shapes=False), 1002, 0.5)
    with pytest.raises(OutsideError, match=r"\b1011\b.*\bGPU 0\b.*\bplayed\b"):
        work(PlayedLibrary(), 1011)
    broken = PlayedLibrary()
    broken.fault = RuntimeError("an illegal memory access was encountered\nmore lines")
    with pytest.raises(OutsideError) as caught:
        work(broken, 1004)
    assert caught.value.what == (
        "GPU 0 does not do the test of 1004 with played: an illegal memory access was encountered"
    )


def test_memory_is_taken_once_per_test() -> None:
    library = PlayedLibrary()
    backend = library.backend()
    for field in (1004, 1004, 1005, 1004):
        backend.work(backend.cards(), LoadTest(field, 30.0), 1.0, 0.1)
    backend.end()
    assert [made[0] for made in library.made] == ["matrices", "copies", "matrices"]


def test_every_card_has_a_thread_of_its_own() -> None:
    library = PlayedLibrary(count=4)
    backend = library.backend()
    for _ in range(3):
        assert len(backend.work(backend.cards()[1:], LoadTest(1005, 30.0), 1.0, 0.05)) == 3
    backend.end()
    assert {card for card, _ in library.threads} == {1, 2, 3} and len(library.threads) == 3


def test_work_that_goes_on_ends_with_the_program() -> None:
    library = PlayedLibrary(seconds_each=0.0)
    backend = library.backend()
    working = threading.Thread(
        target=lambda: backend.work(backend.cards(), LoadTest(1005, 30.0), 1.0, 1e9)
    )
    working.start()
    backend.end()
    working.join(timeout=HANG_SECONDS)
    assert not working.is_alive()


def missing(name: str) -> Callable[[], Any]:
    def make() -> Any:
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)

    return make


def test_the_first_library_with_a_card_is_taken() -> None:
    with_card, without = PlayedLibrary(), PlayedLibrary(count=0)
    assert (
        find_array_library([("cupy", missing("cupy")), ("torch", lambda: with_card)]) is with_card
    )
    assert (
        find_array_library([("cupy", lambda: without), ("torch", lambda: with_card)]) is with_card
    )


def test_why_none_is_taken_is_one_line() -> None:
    def broken() -> Any:
        raise RuntimeError("cudaErrorInsufficientDriver: too old\nsecond line")

    with pytest.raises(OutsideError) as caught:
        find_array_library([("cupy", broken), ("torch", missing("torch"))])
    assert caught.value.what == (
        "no GPU can be made busy (cupy: cudaErrorInsufficientDriver: too old; torch is not "
        "installed); `--backend sim` needs none"
    )
    assert caught.value.hint == ""
    with pytest.raises(OutsideError) as refused:
        find_array_library([("cupy", lambda: PlayedLibrary(count=0))])
    assert (
        refused.value.what
        == "no GPU can be made busy (cupy sees no card); `--backend sim` needs none"
    )


class PlayedTensor:
    def __init__(self, where: str, copied: list[tuple[str, str]]) -> None:
        self.where, self._copied = where, copied

    def copy_(self, source: PlayedTensor, non_blocking: bool) -> None:
        assert non_blocking
        self._copied.append((source.where, self.where))


def played_torch(copied: list[tuple[str, str]], cards: int) -> Any:
    def zeros(size: int, dtype: str, device: str = "", pin_memory: bool = False) -> PlayedTensor:
        return PlayedTensor("pinned" if pin_memory else device, copied)

    card = SimpleNamespace(name="Tesla T4", multi_processor_count=40, major=7, minor=5, uuid="abc")
    cuda = SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: cards,
        get_device_properties=lambda _: card,
        can_device_access_peer=lambda one, other: True,
    )
    return SimpleNamespace(
        cuda=cuda,
        uint8="uint8",
        zeros=zeros,
        zeros_like=lambda other: PlayedTensor(f"{other.where} again", copied),
    )


@pytest.mark.parametrize(
    ("field", "way"),
    [
        (1005, ("cuda:0", "cuda:0 again")),
        (1009, ("cuda:0", "pinned")),
        (1010, ("pinned", "cuda:0")),
        (1011, ("cuda:0", "cuda:1")),
        (1012, ("cuda:1", "cuda:0")),
    ],
)
def test_torch_copies_the_way_that_the_field_counts(
    field: int, way: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[tuple[str, str]] = []
    monkeypatch.setitem(sys.modules, "torch", played_torch(copied, 2))
    from fairlead.edge.cuda.torch_library import TorchLibrary

    library = TorchLibrary()
    assert (library.cards()[0].uuid, library.cards()[0].chip) == (
        "GPU-abc",
        CHIPS["Tesla T4"].__class__(1024, 40, 65536, (7, 5), 256, 5_001_000),
    )
    launch = library.copies(0, field, 100)
    assert launch is not None
    launch.run()
    assert copied == [way]


def test_a_card_alone_has_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", played_torch([], 1))
    from fairlead.edge.cuda.torch_library import TorchLibrary

    assert TorchLibrary().copies(0, 1011, 100) is None
    assert not TorchLibrary().spin(0, 0.1, 40, 1), "torch starts kernels of one thread only"
