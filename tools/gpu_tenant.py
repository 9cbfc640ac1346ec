"""A program of a tenant: it takes GPU memory and GPU time through NVIDIA's driver.

`make gpu-check` starts it with the memory guard and without it. It needs no package; `torch` and
`cupy` allocate through those libraries. Each answer is one line of JSON; after an answer it waits
for a line of its input, and ends with the input. Usage: `gpu_tenant.py CUDA ORDINAL COMMAND …`.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, NamedTuple

OUT_OF_MEMORY = 2
ROW_BYTES = 4096
MIB = 1 << 20
GRANULARITY = 2 * MIB
"""Of VMM, where the driver does not report its own."""
FLOAT = 0x20
"""CU_AD_FORMAT_FLOAT: an element of an array has 4 bytes."""
BATCHES, PAIRS, LAUNCHES = 20, 500, 1000
"""Of the overhead: batches that are timed, and calls of a batch."""
SMALL = 4096
PATIENCE = 5.0
"""Seconds for which `more` asks again."""
WARM_SECONDS = 1.0
KERNEL_NS = 250_000
GRAPH_KERNELS = 4
"""Kernels of one graph, and launches between two looks at the clock."""
KERNELS = b"""
.version 6.0
.target sm_60
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry spin(.param .u64 nanoseconds)
{
    .reg .pred %is_early;
    .reg .u64 %r<5>;
    ld.param.u64 %r1, [nanoseconds];
    mov.u64 %r2, %globaltimer;
again:
    mov.u64 %r3, %globaltimer;
    sub.u64 %r4, %r3, %r2;
    setp.lt.u64 %is_early, %r4, %r1;
    @%is_early bra again;
    ret;
}
"""
"""PTX; the driver compiles it for its GPU."""


class Lacking(Exception):
    """The driver or this Python does not have what the command needs."""


class Failed(Exception):
    """A call that should succeed has not."""


class Driver:
    """The driver's library. `by_address`: functions are found by cuGetProcAddress, not by dlsym."""

    def __init__(self, library: str, ordinal: int) -> None:
        self._library = ctypes.CDLL(library)
        self._by_address: dict[str, Callable[..., int]] = {}
        self.ordinal = ordinal
        self.device, self.context, self.stream = c_int(), c_void_p(), c_void_p()

    def function(self, name: str) -> Callable[..., int]:
        """Raises Lacking."""
        if name in self._by_address:
            return self._by_address[name]
        try:
            found: Callable[..., int] = getattr(self._library, name)
        except AttributeError:
            raise Lacking(f"the driver has no {name}") from None
        return found

    def call(self, name: str, *arguments: object) -> int:
        """The driver's code."""
        return self.function(name)(*arguments)

    def must(self, name: str, *arguments: object) -> None:
        code = self.call(name, *arguments)
        if code:
            raise Failed(f"{name} answers {code}")

    def begin(self) -> None:
        """The primary context of the device, and a stream."""
        self.must("cuInit", c_uint(0))
        self.must("cuDeviceGet", byref(self.device), c_int(self.ordinal))
        self.must("cuDevicePrimaryCtxRetain", byref(self.context), self.device)
        self.must("cuCtxSetCurrent", self.context)
        self.must("cuStreamCreate", byref(self.stream), c_uint(1))

    def find_by_address(self, symbol: str, version: int, export: str) -> None:
        """From now on the export is the function that cuGetProcAddress returns, as for libcudart.

        Raises Lacking.
        """
        found, status = c_void_p(), c_int()
        asked = symbol.encode(), byref(found), c_int(version), c_uint64(0)
        if self.call("cuGetProcAddress_v2", *asked, byref(status)) or not found.value:
            raise Lacking(f"cuGetProcAddress finds no {symbol}")
        self._by_address[export] = ctypes.CFUNCTYPE(c_int)(found.value)

    def memory(self) -> tuple[int, int]:
        """Free and total bytes."""
        free, total = c_size_t(), c_size_t()
        self.must("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value, total.value

    def kernel(self, name: bytes) -> c_void_p:
        module, function = c_void_p(), c_void_p()
        self.must("cuModuleLoadData", byref(module), KERNELS)
        self.must("cuModuleGetFunction", byref(function), module, name)
        return function

    def uuid(self) -> str:
        found = (ctypes.c_ubyte * 16)()
        try:
            code = self.call("cuDeviceGetUuid_v2", found, self.device)
        except Lacking:
            code = self.call("cuDeviceGetUuid", found, self.device)
        text = bytes(found).hex()
        places = (0, 8, 12, 16, 20, 32)
        parts = (text[one:two] for one, two in itertools.pairwise(places))
        return "" if code else f"GPU-{'-'.join(parts)}"


class Shape(ctypes.Structure):
    """CUDA_ARRAY3D_DESCRIPTOR."""

    _fields_ = [
        *((name, c_size_t) for name in ("width", "height", "depth")),
        *((name, c_uint) for name in ("format", "channels", "flags")),
    ]


class Flat(ctypes.Structure):
    """CUDA_ARRAY_DESCRIPTOR."""

    _fields_ = [
        *((name, c_size_t) for name in ("width", "height")),
        *((name, c_uint) for name in ("format", "channels")),
    ]


class Property(ctypes.Structure):
    """CUmemAllocationProp: pinned memory of a device."""

    _fields_ = [
        *((name, c_int) for name in ("type", "handles", "location", "device")),
        ("metadata", c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


Made = tuple[int, Any]
"""The driver's code, and what was made."""


def _linear(driver: Driver, size: int) -> Made:
    at = c_uint64()
    return driver.call("cuMemAlloc_v2", byref(at), c_size_t(size)), at


def _free(driver: Driver, at: Any) -> int:
    return driver.call("cuMemFree_v2", at)


def _by_address(driver: Driver, size: int) -> Made:
    driver.find_by_address("cuMemAlloc", 3020, "cuMemAlloc_v2")
    return _linear(driver, size)


def _pitch(driver: Driver, size: int) -> Made:
    at, pitch = c_uint64(), c_size_t()
    width, height = c_size_t(ROW_BYTES), c_size_t(size // ROW_BYTES)
    asked = byref(at), byref(pitch), width, height, c_uint(4)
    return driver.call("cuMemAllocPitch_v2", *asked), at


def _managed(driver: Driver, size: int) -> Made:
    """Managed memory is on the GPU once the GPU has written it."""
    at = c_uint64()
    code = driver.call("cuMemAllocManaged", byref(at), c_size_t(size), c_uint(1))
    if code == 0:
        try:
            driver.call("cuMemsetD8_v2", at, ctypes.c_ubyte(1), c_size_t(size))
            driver.call("cuCtxSynchronize")
        except Lacking:
            pass
    return code, at


def _async(driver: Driver, size: int) -> Made:
    at = c_uint64()
    return driver.call("cuMemAllocAsync", byref(at), c_size_t(size), driver.stream), at


def _free_async(driver: Driver, at: Any) -> int:
    return driver.call("cuMemFreeAsync", at, driver.stream)


def _handle(driver: Driver, size: int) -> Made:
    """Physical memory of VMM, in whole granules."""
    prop = Property(1, 0, 1, driver.ordinal)
    granule = c_size_t()
    try:
        driver.call("cuMemGetAllocationGranularity", byref(granule), byref(prop), c_int(0))
    except Lacking:
        granule.value = GRANULARITY
    whole = -(-size // granule.value) * granule.value
    handle = c_uint64()
    asked = byref(handle), c_size_t(whole), byref(prop), c_uint64(0)
    return driver.call("cuMemCreate", *asked), handle


def _release(driver: Driver, handle: Any) -> int:
    return driver.call("cuMemRelease", handle)


def _array(driver: Driver, size: int) -> Made:
    made = c_void_p()
    shape = Flat(ROW_BYTES, size // (4 * ROW_BYTES), FLOAT, 1)
    return driver.call("cuArrayCreate_v2", byref(made), byref(shape)), made


def _array_3d(driver: Driver, size: int) -> Made:
    made = c_void_p()
    shape = Shape(1024, 1024, size // (4 << 20), FLOAT, 1, 0)
    return driver.call("cuArray3DCreate_v2", byref(made), byref(shape)), made


def _end_array(driver: Driver, made: Any) -> int:
    return driver.call("cuArrayDestroy", made)


def _mipmapped(driver: Driver, size: int) -> Made:
    made = c_void_p()
    shape = Shape(ROW_BYTES, size // (4 * ROW_BYTES), 0, FLOAT, 1, 0)
    return driver.call("cuMipmappedArrayCreate", byref(made), byref(shape), c_uint(1)), made


def _end_mipmapped(driver: Driver, made: Any) -> int:
    return driver.call("cuMipmappedArrayDestroy", made)


class Allocator(NamedTuple):
    make: Callable[[Driver, int], Made]
    undo: Callable[[Driver, Any], int]


ALLOCATORS = {
    "cuMemAlloc": Allocator(_linear, _free),
    "cuMemAlloc by cuGetProcAddress": Allocator(_by_address, _free),
    "cuMemAllocPitch": Allocator(_pitch, _free),
    "cuMemAllocManaged": Allocator(_managed, _free),
    "cuMemAllocAsync": Allocator(_async, _free_async),
    "cuMemCreate": Allocator(_handle, _release),
    "cuArrayCreate": Allocator(_array, _end_array),
    "cuArray3DCreate": Allocator(_array_3d, _end_array),
    "cuMipmappedArrayCreate": Allocator(_mipmapped, _end_mipmapped),
}


def say(**words: object) -> None:
    print(json.dumps(words), flush=True)


def next_line() -> str:
    """The next line of the input; "" = it has ended."""
    return sys.stdin.readline().strip()


def fill(driver: Driver, name: str, block: int, most: int) -> None:
    """Blocks until one is refused, `most` at most. After a line: free all, and make one again."""
    allocator = ALLOCATORS[name]
    driver.begin()
    held: list[Any] = []
    code = 0
    while len(held) < most:
        code, made = allocator.make(driver, block)
        if code:
            break
        held.append(made)
    driver.call("cuCtxSynchronize")
    free, total = driver.memory()
    say(granted=len(held), code=code, free=free, total=total)
    next_line()
    for made in held:
        if (wrong := allocator.undo(driver, made)) != 0:
            raise Failed(f"{name}: to free it answers {wrong}")
    driver.call("cuStreamSynchronize", driver.stream)
    driver.call("cuCtxSynchronize")
    code, made = allocator.make(driver, block)
    say(code=code)


def race(driver: Driver, block: int, most: int) -> None:
    """Takes blocks after a line, until one is refused. `more`: asks for one until it is granted."""
    driver.begin()
    say(code=0)
    if not next_line():
        return
    granted, code = 0, 0
    while granted < most and (code := _linear(driver, block)[0]) == 0:
        granted += 1
    say(granted=granted, code=code)
    while next_line() == "more":
        until = time.monotonic() + PATIENCE
        while (code := _linear(driver, block)[0]) and time.monotonic() < until:
            time.sleep(0.002)
        say(code=code)


def look(driver: Driver, nvml: str, block: int) -> None:
    """What CUDA and NVML show of the GPU while a block is held."""
    driver.begin()
    wanted = driver.uuid()
    code, _ = _linear(driver, block)
    free, total = driver.memory()
    whole = c_size_t()
    driver.must("cuDeviceTotalMem_v2", byref(whole), driver.device)
    library = ctypes.CDLL(nvml)
    library.nvmlInit_v2()
    count = c_uint()
    library.nvmlDeviceGetCount_v2(byref(count))
    device, uuid = c_void_p(), ctypes.create_string_buffer(96)
    for index in range(count.value):
        library.nvmlDeviceGetHandleByIndex_v2(c_uint(index), byref(device))
        library.nvmlDeviceGetUUID(device, uuid, c_uint(96))
        if uuid.value.decode() == wanted:
            break
    plain, later = (c_uint64 * 3)(), (c_uint64 * 5)(5 * 8 | 2 << 24)
    codes = [
        library.nvmlDeviceGetMemoryInfo(device, plain),
        library.nvmlDeviceGetMemoryInfo_v2(device, later),
    ]
    room, processes = c_uint(64), (c_uint64 * (64 * 4))()
    name = "nvmlDeviceGetComputeRunningProcesses_v3"
    listed = getattr(library, name)(device, byref(room), processes)
    say(
        code=code,
        cuda=[total, free, whole.value],
        nvml=[codes[0], plain[0], plain[2]],
        nvml_v2=[codes[1], later[1], later[4]],
        processes=[listed, room.value],
    )
    next_line()


def overhead(driver: Driver) -> None:
    """Nanoseconds of a pair of allocation and release, and of a launch: medians of batches."""
    driver.begin()
    make, undo = driver.function("cuMemAlloc_v2"), driver.function("cuMemFree_v2")
    at, size = c_uint64(), c_size_t(SMALL)
    where = byref(at)

    def pairs() -> None:
        for _ in range(PAIRS):
            make(where, size)
            undo(at)

    start, one = driver.function("cuLaunchKernel"), c_uint(1)
    shape = one, one, one, one, one, one, c_uint(0)
    asked = driver.kernel(b"nothing"), *shape, driver.stream, None, None

    def launches() -> None:
        for _ in range(LAUNCHES):
            start(*asked)

    def each(batch: Callable[[], None], calls: int) -> float:
        times = []
        for _ in range(BATCHES + 1):
            began = time.perf_counter_ns()
            batch()
            times.append((time.perf_counter_ns() - began) / calls)
            driver.must("cuStreamSynchronize", driver.stream)
        return statistics.median(times[1:])

    say(pair=each(pairs, PAIRS), launch=each(launches, LAUNCHES))


def spin(driver: Driver, how: str, seconds: float) -> None:
    """Kernels that keep the GPU busy, one after the other, by launch or by graph, and their time.

    The driver's queue is kept full, so that a busy machine does not leave the GPU idle. The first
    launches end one by one: the guard does not know their time yet, and charges it afterwards.
    """
    driver.begin()
    one = c_uint(1)
    nanoseconds = c_uint64(KERNEL_NS)
    arguments = (c_void_p * 1)(ctypes.addressof(nanoseconds))
    shape = one, one, one, one, one, one, c_uint(0)
    asked = driver.kernel(b"spin"), *shape, driver.stream, arguments, None

    def launch() -> None:
        for _ in range(GRAPH_KERNELS):
            driver.must("cuLaunchKernel", *asked)

    graph, work = c_void_p(), c_void_p()
    if how == "graph":
        driver.must("cuStreamBeginCapture_v2", driver.stream, c_int(0))
        launch()
        driver.must("cuStreamEndCapture", driver.stream, byref(graph))
        driver.must("cuGraphInstantiateWithFlags", byref(work), graph, c_uint64(0))

    def launch_graph() -> None:
        driver.must("cuGraphLaunch", work, driver.stream)

    start = launch_graph if how == "graph" else launch

    def kernels(lasting: float) -> tuple[int, float]:
        count, began = 0, time.monotonic()
        while not count or time.monotonic() - began < lasting:
            start()
            count += GRAPH_KERNELS
        driver.must("cuStreamSynchronize", driver.stream)
        return count, time.monotonic() - began

    for _ in range(GRAPH_KERNELS):
        kernels(0.0)
    kernels(WARM_SECONDS)
    count, took = kernels(seconds)
    say(kernels=count, seconds=took)


def devices(driver: Driver) -> None:
    """The UUID of each device that this process sees."""
    driver.must("cuInit", c_uint(0))
    count, found = c_int(), []
    driver.must("cuDeviceGetCount", byref(count))
    for ordinal in range(count.value):
        driver.must("cuDeviceGet", byref(driver.device), c_int(ordinal))
        found.append(driver.uuid())
    say(uuids=found)


def context(driver: Driver) -> None:
    """Holds a context, and nothing else, until the input ends."""
    driver.begin()
    say(code=0)
    next_line()


def with_torch(ordinal: int, block: int, most: int) -> None:
    """As `fill`, by PyTorch's allocator."""
    torch = _import("torch")
    card = f"cuda:{ordinal}"

    def take() -> object:
        return torch.empty(block, dtype=torch.uint8, device=card)

    def give_back() -> None:
        torch.cuda.synchronize(ordinal)
        torch.cuda.empty_cache()

    refused = torch.cuda.OutOfMemoryError
    _fill_arrays(take, refused, give_back, lambda: torch.cuda.mem_get_info(ordinal), most)


def with_cupy(ordinal: int, block: int, most: int) -> None:
    """As `fill`, by CuPy's memory pool."""
    cupy = _import("cupy")
    cuda = cupy.cuda
    with cuda.Device(ordinal):
        _fill_arrays(
            lambda: cuda.alloc(block),
            cuda.memory.OutOfMemoryError,
            lambda: cupy.get_default_memory_pool().free_all_blocks(),
            cuda.runtime.memGetInfo,
            most,
        )


def _import(name: str) -> Any:
    """Raises Lacking."""
    try:
        return __import__(name)
    except ModuleNotFoundError as error:
        raise Lacking(f"{error.name} is not installed") from error


def _fill_arrays(
    take: Callable[[], object],
    refused: type[Exception],
    give_back: Callable[[], object],
    memory: Callable[[], Sequence[int]],
    most: int,
) -> None:
    def taken(into: list[object]) -> int:
        try:
            into.append(take())
        except refused:
            return OUT_OF_MEMORY
        return 0

    held: list[object] = []
    code = 0
    while len(held) < most and not code:
        code = taken(held)
    free, total = memory()
    say(granted=len(held), code=code, free=free, total=total)
    next_line()
    held.clear()
    give_back()
    say(code=taken(held))


def main(words: Sequence[str]) -> int:
    library, ordinal, command, *rest = words
    try:
        if command in ("torch", "cupy"):
            block, most = map(int, rest)
            (with_torch if command == "torch" else with_cupy)(int(ordinal), block, most)
        else:
            _run(Driver(library, int(ordinal)), command, rest)
    except Lacking as lacking:
        say(lacks=str(lacking))
    except (Failed, OSError) as failed:
        say(failed=str(failed))
    return 0


def _run(driver: Driver, command: str, rest: Sequence[str]) -> None:
    if command == "fill":
        fill(driver, rest[0], int(rest[1]), int(rest[2]))
    elif command == "race":
        race(driver, int(rest[0]), int(rest[1]))
    elif command == "look":
        look(driver, rest[0], int(rest[1]))
    elif command == "spin":
        spin(driver, rest[0], float(rest[1]))
    else:
        {"devices": devices, "context": context, "overhead": overhead}[command](driver)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
