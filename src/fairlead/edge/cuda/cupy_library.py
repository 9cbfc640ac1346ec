"""`ArrayLibrary` with cupy, which also compiles the two kernels below on first use."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from fairlead.edge.cuda.array_library import NANOSECONDS, Launch, spelled_uuid
from fairlead.model.devices.gpu_chip import Chip, LoadCard
from fairlead.model.devices.gpu_load import DRAM, NVLINK_RX, NVLINK_TX, PCIE_RX, PCIE_TX

_SPIN: Final = """
extern "C" __global__ void spin(unsigned long long nanoseconds) {
    unsigned long long began, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
    do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); } while (now - began < nanoseconds);
}
"""
_SUMS: Final = """
extern "C" __global__ void sums(unsigned long long *out, int rounds) {
    @TYPE@ a = (@TYPE@)threadIdx.x, b = (@TYPE@)(threadIdx.x + 1);
    @TYPE@ c = (@TYPE@)(threadIdx.x + 2), d = (@TYPE@)(threadIdx.x + 3);
    const @TYPE@ x = (@TYPE@)@X@, y = (@TYPE@)@Y@;
    for (int i = 0; i < rounds; i++) {
        asm volatile("fma.rn.@PTX@ %0, %0, %1, %2;" : "+@REG@"(a) : "@REG@"(x), "@REG@"(y));
        asm volatile("fma.rn.@PTX@ %0, %0, %1, %2;" : "+@REG@"(b) : "@REG@"(x), "@REG@"(y));
        asm volatile("fma.rn.@PTX@ %0, %0, %1, %2;" : "+@REG@"(c) : "@REG@"(x), "@REG@"(y));
        asm volatile("fma.rn.@PTX@ %0, %0, %1, %2;" : "+@REG@"(d) : "@REG@"(x), "@REG@"(y));
    }
    if (a + b + c + d == (@TYPE@)12345) out[0] = 1;
}
"""
_TYPES: Final = {
    64: ("double", "f64", "d", "0.999999", "0.5", 1),
    32: ("float", "f32", "f", "0.999999f", "0.5f", 1),
    16: ("unsigned int", "f16x2", "r", "0x3bff3bffu", "0x38003800u", 2),
}
"""Per width: C type, PTX type, register, factor, summand, operations per instruction.

Two halves are one word.
"""
_CHAINS, _ROUNDS, _THREADS, _BLOCKS_PER_SM = 4, 4096, 256, 8
_MEMORY_CLOCK_ATTRIBUTE, _BUS_WIDTH_ATTRIBUTE = 36, 37
_IS_OPEN_ALREADY: Final = 704
_GEMMS_PER_CHECK, _COPIES_PER_CHECK = 100, 20


class CupyLibrary:
    name = "cupy"

    def __init__(self) -> None:
        self._cupy: Any = import_module("cupy")
        self._cards = self._found()
        self._kernels: dict[tuple[int, int], Any] = {}

    def cards(self) -> Sequence[LoadCard]:
        return self._cards

    def matrices(self, card: int, bits: int, size: int) -> Launch:
        cupy = self._cupy
        with cupy.cuda.Device(card):
            left, right, out = (cupy.ones((size, size), dtype=f"float{bits}") for _ in range(3))

        def run() -> None:
            with cupy.cuda.Device(card):
                cupy.matmul(left, right, out=out)

        return Launch(run, 2.0 * size**3, _GEMMS_PER_CHECK if bits == 16 else 4)

    def arithmetic(self, card: int, bits: int) -> Launch | None:
        cupy = self._cupy
        processors = self._cards[card].chip.processors
        *words, per_instruction = _TYPES[bits]
        with cupy.cuda.Device(card):
            kernel, out = (
                self._kernel(card, bits, _filled(*map(str, words)), "sums"),
                cupy.zeros(1, dtype="uint64"),
            )

        def run() -> None:
            with cupy.cuda.Device(card):
                kernel((processors * _BLOCKS_PER_SM,), (_THREADS,), (out, cupy.int32(_ROUNDS)))

        flops = (
            2.0 * int(per_instruction) * _CHAINS * _ROUNDS * _THREADS * _BLOCKS_PER_SM * processors
        )
        return Launch(run, flops, 20)

    def copies(self, card: int, field: int, size: int) -> Launch | None:
        cupy = self._cupy
        other = self._peer(card)
        if field in (NVLINK_TX, NVLINK_RX) and other is None:
            return None
        with cupy.cuda.Device(card):
            here = cupy.zeros(size, dtype="uint8")
            there = (
                cupy.zeros(size, dtype="uint8")
                if field == DRAM
                else self._pinned(size)
                if field in (PCIE_TX, PCIE_RX)
                else None
            )
        if there is None:
            with cupy.cuda.Device(other):
                there = cupy.zeros(size, dtype="uint8")
            self._open_link(card, other)

        def run() -> None:
            with cupy.cuda.Device(card):
                stream = cupy.cuda.get_current_stream()
                if field == PCIE_TX:
                    cupy.cuda.runtime.memcpyAsync(
                        there.ctypes.data, here.data.ptr, size, 2, stream.ptr
                    )
                elif field == PCIE_RX:
                    cupy.cuda.runtime.memcpyAsync(
                        here.data.ptr, there.ctypes.data, size, 1, stream.ptr
                    )
                elif field == NVLINK_TX:
                    cupy.cuda.runtime.memcpyPeerAsync(
                        there.data.ptr, other, here.data.ptr, card, size, stream.ptr
                    )
                elif field == NVLINK_RX:
                    cupy.cuda.runtime.memcpyPeerAsync(
                        here.data.ptr, card, there.data.ptr, other, size, stream.ptr
                    )
                else:
                    cupy.cuda.runtime.memcpyAsync(
                        there.data.ptr, here.data.ptr, size, 3, stream.ptr
                    )

        return Launch(run, size * (2.0 if field == DRAM else 1.0), _COPIES_PER_CHECK)

    def spin(self, card: int, seconds: float, blocks: int, threads: int) -> bool:
        cupy = self._cupy
        with cupy.cuda.Device(card):
            self._kernel(card, 0, _SPIN, "spin")(
                (blocks,), (threads,), (cupy.uint64(int(seconds * NANOSECONDS)),)
            )
        return True

    def wait(self, card: int) -> None:
        with self._cupy.cuda.Device(card):
            self._cupy.cuda.get_current_stream().synchronize()

    def _kernel(self, card: int, bits: int, source: str, name: str) -> Any:
        if (card, bits) not in self._kernels:
            self._kernels[card, bits] = self._cupy.RawKernel(source, name)
        return self._kernels[card, bits]

    def _open_link(self, card: int, other: int | None) -> None:
        """Opens peer access; without it a copy between cards goes through the machine's memory."""
        cuda = self._cupy.cuda
        with cuda.Device(card):
            try:
                cuda.runtime.deviceEnablePeerAccess(other)
            except cuda.runtime.CUDARuntimeError as error:
                if error.status != _IS_OPEN_ALREADY:
                    raise

    def _pinned(self, size: int) -> Any:
        return import_module("cupyx").empty_pinned((size,), dtype="uint8")

    def _peer(self, card: int) -> int | None:
        others = (each.index for each in self._cards if each.index != card)
        return next(
            (other for other in others if self._cupy.cuda.runtime.deviceCanAccessPeer(card, other)),
            None,
        )

    def _found(self) -> tuple[LoadCard, ...]:
        runtime = self._cupy.cuda.runtime
        return tuple(_card(runtime, index) for index in range(runtime.getDeviceCount()))


def _card(runtime: Any, index: int) -> LoadCard:
    properties = runtime.getDeviceProperties(index)
    name = properties["name"]
    chip = Chip(
        properties["maxThreadsPerMultiProcessor"],
        properties["multiProcessorCount"],
        properties["sharedMemPerMultiprocessor"],
        (properties["major"], properties["minor"]),
        runtime.deviceGetAttribute(_BUS_WIDTH_ATTRIBUTE, index),
        runtime.deviceGetAttribute(_MEMORY_CLOCK_ATTRIBUTE, index),
    )
    raw = properties.get("uuid")
    return LoadCard(
        index,
        spelled_uuid(bytes(raw)) if raw else "",
        name.decode() if isinstance(name, bytes) else str(name),
        chip,
    )


def _filled(type_name: str, ptx: str, register: str, factor: str, summand: str) -> str:
    words = {"TYPE": type_name, "PTX": ptx, "REG": register, "X": factor, "Y": summand}
    text = _SUMS
    for key, word in words.items():
        text = text.replace(f"@{key}@", word)
    return text
