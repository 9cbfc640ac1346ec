"""The memory guard on a real GPU: the part `guard` of `make gpu-check`.

A container is two files, limits and region, which the node agent's own code writes. Its programs
(gpu_tenant.py) get the guard by LD_PRELOAD. This process does not: it reads from NVML what the GPU
really has in use.

The GPU must have no other work: what another program takes meanwhile counts as the container's.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pynvml

from build_native import build_guard
from fairlead.edge.node.agent_files import GUARDS
from fairlead.edge.nvml.library import close_library, open_library
from fairlead.model.devices.kubelet import CardLimit, ContainerLimits, RegionCard
from fairlead.model.refusal import Refusal
from fairlead.rules.devices.container_edits import fresh_region
from fairlead.rules.devices.watchdog import ALLOWANCE_MIB
from fairlead.wire.kubelet.limits_file import render_limits
from fairlead.wire.kubelet.region_file import parse_region, render_region
from gpu_checks import DIFFERS, OK, SKIPPED, Row
from gpu_tenant import ALLOCATORS, OUT_OF_MEMORY
from progress import StepFailed

CHECK = "guard"
CUDA = "libcuda.so.1"
MIB = 1 << 20
LIMIT_MIB = 2048
"""The limit of the container that is checked; a second one has twice as much."""
LEAST_MIB = 256
BLOCKS = 16
"""Blocks of a container that is full."""
STEP_MIB = 8 * BLOCKS
"""A limit is a multiple of this: blocks, and a quarter of one, are whole pages of the GPU."""
PAGE = 2 * MIB
PART = 0.75
"""Of its limit a container gets at least this, where an allocator rounds up."""
EXACT = ("cuMemAlloc", "cuMemAlloc by cuGetProcAddress", "cuMemAllocManaged", "cuMemCreate")
"""Allocators that give a container its limit to the byte."""
SLACK_MIB = 64
"""What the driver may keep for itself beside the memory that it gave."""
SAMPLE_SECONDS = 0.01
ANSWER_SECONDS = 90.0
"""Patience with an answer of a program: PyTorch may take half a minute to start."""
REST_SECONDS = 5.0
"""Patience with the driver until it has the memory of a program that ended."""
FREED_SECONDS = 1.0
"""After a killed process has ended, others of its container get its memory within this time."""
RACERS = (4, 2)
"""Processes of each of two containers."""
TURNS = 5
"""Runs with the guard and without it, in turn."""
SHARE_PERCENT = 50
SHARE_POINTS = 5.0
SHARE_SECONDS = 3.0
SHARE_TURNS = 2
"""The nearest of these runs counts: a busy machine starts launches late."""
LIMITS_PATH = Path("/etc/fairlead/gpu/limits")
"""A container of the node agent has its own limits there, and the guard reads no other."""
TORCH_ALLOCATORS = ("", "expandable_segments:True", "backend:cudaMallocAsync")


@dataclass(frozen=True)
class GuardAsked:
    """`nvml`, `cuda`: NVIDIA's libraries. `guard`: the guard's, None = build it, or take the
    package's. `limit_mib`: of the smaller container.
    """

    nvml: str
    cuda: str = CUDA
    guard: Path | None = None
    limit_mib: int = LIMIT_MIB
    only: str = ""


class TenantStopped(Exception):
    """A program ended, or answered that a call failed."""


class TenantLacks(Exception):
    """A program answered that the driver, or this Python, does not have what it needs."""


class Truth:
    """Memory in use of one GPU, by NVML, and its highest since `begin`. In MiB."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._lock = threading.Lock()
        self._beginnings = 0
        self.rest = self._peak = self.used()
        self._is_over = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()

    def used(self) -> float:
        return float(pynvml.nvmlDeviceGetMemoryInfo(self._handle).used / MIB)

    def _sample(self) -> None:
        with contextlib.suppress(pynvml.NVMLError):  # the check itself asks NVML, too
            while not self._is_over.wait(SAMPLE_SECONDS):
                beginnings, used = self._beginnings, self.used()
                with self._lock:
                    if beginnings == self._beginnings:
                        self._peak = max(self._peak, used)

    def begin(self) -> None:
        """Waits until the memory of programs that ended is free, and then measures from there."""
        until = time.monotonic() + REST_SECONDS
        while self.used() > self.rest + 1 and time.monotonic() < until:
            time.sleep(SAMPLE_SECONDS)
        with self._lock:
            self._beginnings += 1
            self.rest = self._peak = self.used()

    def peak(self) -> float:
        """Above what was in use at `begin`."""
        used = self.used()
        with self._lock:
            self._peak = max(self._peak, used)
            return self._peak - self.rest

    def end(self) -> None:
        self._is_over.set()
        self._sampler.join()


class Tenant:
    """A program of a container, or without the guard."""

    def __init__(self, argv: Sequence[str], environment: dict[str, str]) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `end`
        self._process = subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def answer(self) -> dict[str, Any]:
        """Raises TenantStopped, or TenantLacks."""
        assert self._process.stdout is not None
        ender = threading.Timer(ANSWER_SECONDS, self._process.kill)
        ender.daemon = True
        try:
            ender.start()
            line = self._process.stdout.readline()
        finally:
            ender.cancel()
        if not line:
            raise TenantStopped(f"status {self._process.wait(20)}{self._last_error()}")
        found: dict[str, Any] = json.loads(line)
        if "lacks" in found:
            raise TenantLacks(found["lacks"])
        if "failed" in found:
            raise TenantStopped(found["failed"])
        return found

    def ask(self, line: str) -> dict[str, Any]:
        self.send(line)
        return self.answer()

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # `answer` finds how it ended

    def kill(self) -> None:
        """SIGKILL; returns when the process has ended."""
        self._process.kill()
        self._process.wait(20)

    def _last_error(self) -> str:
        self._errors.seek(0)
        last = self._errors.read().strip().splitlines()[-1:]
        return f": {last[0]}" if last else ""

    def end(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()


class Container:
    """The files of a container, and the start of its programs. `folder` None: without the guard."""

    def __init__(self, seat: Seat, name: str, limit_mib: int, core_percent: int = 0) -> None:
        self._seat = seat
        self.limit_mib = limit_mib
        folder = seat.folder / name
        folder.mkdir()
        self._limits, self._region = folder / "limits", folder / "region"
        card = CardLimit(seat.uuid, limit_mib, core_percent)
        self._region.write_bytes(render_region(fresh_region(time.time())))
        self._limits.write_bytes(render_limits(ContainerLimits((card,), str(self._region))))

    @property
    def environment(self) -> dict[str, str]:
        guard = {"LD_PRELOAD": str(self._seat.guard), "FAIRLEAD_GUARD_LIMITS": str(self._limits)}
        return {**bare_environment(), **guard}

    def counted(self) -> RegionCard:
        """What the guard counts of the GPU."""
        region = parse_region(self._region.read_bytes())
        if isinstance(region, Refusal):
            raise TenantStopped(region.reason)
        return region.cards[0]


def bare_environment() -> dict[str, str]:
    """Of a program without the guard."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


@dataclass(frozen=True)
class Seat:
    """The GPU that is checked. `ordinal`: CUDA's, `card`: NVML's index; `guard`: the library;
    `context_mib`: what the driver takes for a program without memory.
    """

    asked: GuardAsked
    truth: Truth
    guard: Path
    folder: Path
    ordinal: int
    card: str
    uuid: str
    context_mib: float = 0.0

    @property
    def limit_mib(self) -> int:
        return self.asked.limit_mib

    @property
    def block(self) -> int:
        """Bytes."""
        return self.limit_mib * MIB // BLOCKS

    @property
    def allowance_mib(self) -> float:
        """What one program may have beside the limit: its context, which has a check of its own."""
        return max(ALLOWANCE_MIB, self.context_mib + SLACK_MIB)

    @contextmanager
    def running(self, container: Container | None, *words: object, **more: str) -> Iterator[Tenant]:
        """A program, which has ended when this returns."""
        kept = container.environment if container else bare_environment()
        argv = tenant_argv(self.asked.cuda, self.ordinal, *words)
        tenant: Tenant | None = None
        try:
            with late_signals():
                tenant = Tenant(argv, {**kept, **more})
            yield tenant
        except BaseException:
            if tenant is not None:
                tenant.kill()
            raise
        finally:
            if tenant is not None:
                tenant.end()

    def row(self, subject: str, is_right: bool, wanted: str, found: str, note: str = "") -> Row:
        return Row(CHECK, self.card, subject, OK if is_right else DIFFERS, wanted, found, note)


@contextmanager
def late_signals() -> Iterator[None]:
    """A signal that ends this process waits until the program that starts now is known.

    Raises KeyboardInterrupt then.
    """
    arrived: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.signal(each, lambda one, _: arrived.append(one)) for each in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if arrived:
        raise KeyboardInterrupt


def tenant_argv(cuda: str, ordinal: int, *words: object) -> list[str]:
    program = Path(__file__).with_name("gpu_tenant.py")
    return [sys.executable, str(program), cuda, str(ordinal), *map(str, words)]


def guard_rows(asked: GuardAsked, deadline: float) -> list[Row]:
    """All rows of the guard. `deadline`: seconds of the steady clock; later checks are skipped."""
    if LIMITS_PATH.exists():
        return [_skipped("", f"{LIMITS_PATH} is there: run this outside a container")]
    try:
        guard = asked.guard or _guard()
        ordinal, uuid = _device(asked)
    except (StepFailed, TenantLacks, TenantStopped) as error:
        return [_skipped("", error.what if isinstance(error, StepFailed) else str(error))]
    open_library(asked.nvml)
    try:
        index, handle = _card(uuid)
        if handle is None:
            return [_skipped("", f"NVML has no GPU {uuid}: MIG is not checked")]
        with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
            truth = Truth(handle)
            try:
                seat = Seat(asked, truth, guard, Path(folder), ordinal, str(index), uuid)
                return _seat_rows(seat, handle, deadline)
            finally:
                truth.end()
    finally:
        close_library()


def _skipped(card: str, note: str, subject: str = "all checks") -> Row:
    return Row(CHECK, card, subject, SKIPPED, note=note)


def _guard() -> Path:
    """The library, of this checkout's source where there is a compiler. Raises StepFailed."""
    try:
        return build_guard()
    except StepFailed:
        shipped = sorted((GUARDS / platform.machine()).glob("*.so"))
        if not shipped:
            raise
        return shipped[0]


def _device(asked: GuardAsked) -> tuple[int, str]:
    """The first device of CUDA. Raises TenantLacks and TenantStopped."""
    try:
        ctypes.CDLL(asked.cuda)
    except OSError as error:
        raise TenantLacks(f"{asked.cuda} cannot be loaded: {error}") from error
    tenant = Tenant(tenant_argv(asked.cuda, 0, "devices"), bare_environment())
    try:
        uuids: list[str] = tenant.answer()["uuids"]
    finally:
        tenant.end()
    if not uuids:
        raise TenantLacks("CUDA sees no GPU")
    return 0, uuids[0]


def _card(uuid: str) -> tuple[int, Any]:
    """NVML's index and handle; the handle is None where NVML has no such GPU."""
    for index in range(pynvml.nvmlDeviceGetCount()):
        with contextlib.suppress(pynvml.NVMLError):  # a card that is lost
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            if pynvml.nvmlDeviceGetUUID(handle) == uuid:
                return index, handle
    return -1, None


def _seat_rows(seat: Seat, handle: Any, deadline: float) -> list[Row]:
    free = pynvml.nvmlDeviceGetMemoryInfo(handle).free // MIB
    limit = min(seat.limit_mib, free // 5) // STEP_MIB * STEP_MIB
    if limit < LEAST_MIB:
        return [_skipped(seat.card, f"the GPU has {free} MiB free, {5 * LEAST_MIB} are needed")]
    try:
        context = _context_mib(seat)
    except (TenantLacks, TenantStopped) as error:
        return [seat.row("context of a program", False, "an answer", str(error))]
    seat = replace(seat, asked=replace(seat.asked, limit_mib=limit), context_mib=context)
    checks: list[tuple[str, Callable[[Seat], list[Row]]]] = [
        ("context of a program", context_rows),
        ("without the guard", bare_rows),
        *((f"limit of {name}", _of_allocator(name)) for name in ALLOCATORS),
        ("limit of blocks of 2 MiB and 1 byte", unaligned_rows),
        ("what programs see", view_rows),
        ("what nvidia-smi shows", smi_rows),
        *(
            (f"limit of torch {allocator}".strip(), _of_torch(allocator))
            for allocator in TORCH_ALLOCATORS
        ),
        ("limit of cupy", cupy_rows),
        ("two containers", race_rows),
        ("kill -9", kill_rows),
        ("overhead", overhead_rows),
        *((f"compute share, {how}", _of_share(how)) for how in ("eager", "graph")),
    ]
    began, rows = seat.truth.used(), []
    for subject, check in checks:
        if seat.asked.only not in subject:
            continue
        if time.monotonic() > deadline:
            rows.append(_skipped(seat.card, "no time is left", subject))
            continue
        seat.truth.begin()
        rows += _checked(seat, subject, check)
    seat.truth.begin()
    left = seat.truth.used() - began
    wanted, found = f"at most {SLACK_MIB} MiB more", f"{left:+.0f} MiB"
    return [*rows, seat.row("memory in use after all checks", left <= SLACK_MIB, wanted, found)]


def _checked(seat: Seat, subject: str, check: Callable[[Seat], list[Row]]) -> list[Row]:
    try:
        return check(seat)
    except TenantLacks as lacks:
        return [_skipped(seat.card, str(lacks), subject)]
    except (TenantStopped, pynvml.NVMLError) as stopped:
        return [seat.row(subject, False, "an answer", str(stopped))]


def _context_mib(seat: Seat) -> float:
    with seat.running(None, "context") as tenant:
        tenant.answer()
        return seat.truth.peak()


def context_rows(seat: Seat) -> list[Row]:
    """What the driver takes for a context, for which a limits file of the agent reserves nothing.

    The watchdog allows each process this much beside the grant.
    """
    wanted, found = f"at most {ALLOWANCE_MIB:.0f} MiB", f"{seat.context_mib:.0f} MiB"
    note = "the limits file reserves 0 MiB for it"
    is_right = seat.context_mib <= ALLOWANCE_MIB
    return [seat.row("context of a program", is_right, wanted, found, note)]


def bare_rows(seat: Seat) -> list[Row]:
    """Without the guard a program takes more than the limit, so these checks can fail."""
    most = BLOCKS + BLOCKS // 2
    with seat.running(None, "fill", "cuMemAlloc", seat.block, most) as tenant:
        filled = tenant.answer()
        peak = seat.truth.peak()
    is_right = filled["granted"] == most and peak > seat.limit_mib
    wanted = f"more than {seat.limit_mib} MiB"
    return [seat.row("without the guard", is_right, wanted, f"{peak:.0f} MiB in use")]


def _of_allocator(name: str) -> Callable[[Seat], list[Row]]:
    part = 1.0 if name in EXACT else PART
    return lambda seat: limit_rows(seat, f"limit of {name}", seat.block, part, "fill", name)


def unaligned_rows(seat: Seat) -> list[Row]:
    """Blocks for which a driver that gives whole pages takes twice what is asked for."""
    subject = "limit of blocks of 2 MiB and 1 byte"
    return limit_rows(seat, subject, PAGE + 1, PART / 2, "fill", "cuMemAlloc")


def _of_torch(allocator: str) -> Callable[[Seat], list[Row]]:
    more = {"PYTORCH_CUDA_ALLOC_CONF": allocator} if allocator else {}
    subject = f"limit of torch {allocator}".strip()
    return lambda seat: _array_rows(seat, subject, "torch", **more)


def cupy_rows(seat: Seat) -> list[Row]:
    return _array_rows(seat, "limit of cupy", "cupy")


def _array_rows(seat: Seat, subject: str, library: str, **more: str) -> list[Row]:
    """Raises TenantLacks."""
    if importlib.util.find_spec(library) is None:
        raise TenantLacks(f"{library} is not installed")
    return limit_rows(seat, subject, seat.block, PART, library, **more)


def limit_rows(
    seat: Seat, subject: str, block: int, part: float, *words: str, **more: str
) -> list[Row]:
    """A program that allocates until it is refused: at the limit, and by CUDA's code.

    It gets at least `part` of the limit, in blocks of `block` bytes. The second row has the total
    that it sees, the third compares what the guard counts with what the GPU has given; the context
    is in neither.
    """
    container = _container(seat, subject)
    blocks = seat.limit_mib * MIB // block
    least = int(blocks * part)
    with seat.running(container, *words, block, 2 * blocks, **more) as tenant:
        filled = tenant.answer()
        peak, counted = seat.truth.peak(), container.counted()
        again = tenant.ask("")["code"]
    most = seat.limit_mib + seat.allowance_mib
    is_right = filled["code"] == OUT_OF_MEMORY and least <= filled["granted"] <= blocks
    size = f"{block / MIB:.0f} MiB"
    count = f"{least} to {blocks}" if least < blocks else f"{blocks}"
    wanted = f"{count} × {size}, then code 2; in use at most {most:.0f} MiB; then code 0"
    found = f"{filled['granted']} × {size}, then code {filled['code']}; in use {peak:.0f} MiB"
    is_right = is_right and peak <= most and again == 0
    total, used = filled["total"] // MIB, counted.used / MIB
    given = max(peak - seat.context_mib, 0.0)
    is_counted = given <= used + SLACK_MIB and used <= seat.limit_mib
    within = f"at least {given:.0f} MiB, at most {seat.limit_mib} MiB"
    limit = f"{seat.limit_mib} MiB"
    return [
        seat.row(subject, is_right, wanted, f"{found}; then code {again}"),
        seat.row(f"{subject}: total", total == seat.limit_mib, limit, f"{total} MiB"),
        seat.row(f"{subject}: counted", is_counted, within, f"{used:.0f} MiB"),
    ]


def _container(
    seat: Seat, name: str, limit_mib: int | None = None, core_percent: int = 0
) -> Container:
    folder = "".join(letter if letter.isalnum() else "-" for letter in name)
    return Container(seat, folder, limit_mib or seat.limit_mib, core_percent)


def view_rows(seat: Seat) -> list[Row]:
    """What a program sees while it holds one block."""
    container = _container(seat, "view")
    limit, block = seat.limit_mib, seat.block // MIB
    with seat.running(container, "look", seat.asked.nvml, seat.block) as tenant:
        seen = tenant.answer()
    total, free, whole = (each // MIB for each in seen["cuda"])
    wanted = {
        "cuMemGetInfo": f"{limit - block} of {limit} MiB free",
        "cuDeviceTotalMem": f"{limit} MiB",
        "nvmlDeviceGetMemoryInfo": f"code 0, {block} of {limit} MiB in use",
        "nvmlDeviceGetMemoryInfo_v2": f"code 0, {block} of {limit} MiB in use",
        "nvmlDeviceGetComputeRunningProcesses": "code 0, 0 processes",
    }
    code, count = seen["processes"]
    found = {
        "cuMemGetInfo": f"{free} of {total} MiB free",
        "cuDeviceTotalMem": f"{whole} MiB",
        "nvmlDeviceGetMemoryInfo": _in_use(*seen["nvml"]),
        "nvmlDeviceGetMemoryInfo_v2": _in_use(*seen["nvml_v2"]),
        "nvmlDeviceGetComputeRunningProcesses": f"code {code}, {count} processes",
    }
    return [
        seat.row(f"what programs see: {name}", found[name] == text, text, found[name])
        for name, text in wanted.items()
    ]


def _in_use(code: int, total: int, used: int) -> str:
    return f"code {code}, {used // MIB} of {total // MIB} MiB in use"


def smi_rows(seat: Seat) -> list[Row]:
    """nvidia-smi in a container whose program holds one block."""
    program = shutil.which("nvidia-smi")
    if program is None:
        raise TenantLacks("nvidia-smi is not on PATH")
    container = _container(seat, "nvidia-smi")
    with seat.running(container, "race", seat.block, 1) as tenant:
        tenant.answer()
        tenant.ask("go")
        argv = [program, f"--id={seat.card}", "--query-gpu=memory.used,memory.total"]
        done = subprocess.run(
            [*argv, "--format=csv,noheader,nounits"],
            env=container.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    found = done.stdout.strip() if done.returncode == 0 else f"status {done.returncode}"
    wanted = f"{seat.block // MIB}, {seat.limit_mib}"
    note = "used, total in MiB" if done.returncode == 0 else done.stderr.strip()
    return [seat.row("what nvidia-smi shows", found == wanted, wanted, found, note)]


def race_rows(seat: Seat) -> list[Row]:
    """Two containers of several processes each, which all allocate at once."""
    block = seat.block // 4
    limits = (seat.limit_mib, 2 * seat.limit_mib)
    containers = [_container(seat, f"race-{number}", limit) for number, limit in enumerate(limits)]
    with ExitStack() as ended:
        tenants = [
            [
                ended.enter_context(seat.running(each, "race", block, 16 * BLOCKS))
                for _ in range(count)
            ]
            for each, count in zip(containers, RACERS, strict=True)
        ]
        everyone = [tenant for group in tenants for tenant in group]
        for tenant in everyone:
            tenant.answer()
        contexts = seat.truth.peak()
        for tenant in everyone:
            tenant.send("go")
        answers = [[tenant.answer() for tenant in group] for group in tenants]
        peak = seat.truth.peak()
        counted = [each.counted() for each in containers]
    rows = []
    for limit, group, count, seen in zip(limits, answers, RACERS, counted, strict=True):
        got = sum(answer["granted"] for answer in group) * block // MIB
        codes = {answer["code"] for answer in group}
        is_right = got == limit and codes == {OUT_OF_MEMORY} and seen.peak <= limit * MIB
        found = f"{got} MiB, codes {sorted(codes)}, counted {seen.peak // MIB} MiB at most"
        wanted = f"{limit} MiB, codes [2], counted {limit} MiB at most"
        subject = f"{count} processes of a container of {limit} MiB race"
        rows.append(seat.row(subject, is_right, wanted, found))
    most = sum(limits) + contexts + SLACK_MIB
    note = f"contexts took {contexts:.0f} MiB"
    subject = "memory in use of both containers"
    found = f"{peak:.0f} MiB"
    return [*rows, seat.row(subject, peak <= most, f"at most {most:.0f} MiB", found, note)]


def kill_rows(seat: Seat) -> list[Row]:
    """A process has all of a container's memory, and is killed: another process gets it."""
    container = _container(seat, "kill")
    with (
        seat.running(container, "race", seat.block, BLOCKS) as first,
        seat.running(container, "race", seat.block, BLOCKS) as second,
    ):
        first.answer(), second.answer()
        first.ask("go")
        before = second.ask("go")
        began = time.monotonic()
        first.kill()
        ended = time.monotonic()
        code = second.ask("more")["code"]
        got = time.monotonic()
        for _ in range(BLOCKS - 1):
            code = code or second.ask("more")["code"]
        counted = container.counted()
        peak = seat.truth.peak()
    is_right = before["code"] == OUT_OF_MEMORY and code == 0 and got - ended <= FREED_SECONDS
    wanted = f"code 2, then code 0 within {FREED_SECONDS:g} s of its end"
    note = f"the process ended {ended - began:.2f} s after the signal"
    found = f"code {before['code']}, then code {code} after {got - ended:.2f} s"
    rows = [seat.row("kill -9 of a process that has all", is_right, wanted, found, note)]
    most = seat.limit_mib + 2 * seat.allowance_mib
    is_right = counted.used <= seat.limit_mib * MIB and peak <= most
    wanted = f"counted {seat.limit_mib} MiB, in use at most {most:.0f} MiB"
    found = f"counted {counted.used // MIB} MiB, in use at most {peak:.0f} MiB"
    return [
        *rows,
        seat.row("after it the container has its limit, and no more", is_right, wanted, found),
    ]


def overhead_rows(seat: Seat) -> list[Row]:
    """Runs with the guard and without it, in turn. It has no limit: the machine decides it."""
    container = _container(seat, "overhead")
    times: dict[tuple[str, bool], list[float]] = {}
    for turn in range(2 * TURNS):
        place = container if turn % 2 else None
        with seat.running(place, "overhead") as tenant:
            for name, value in tenant.answer().items():
                times.setdefault((name, place is not None), []).append(value)
    rows = []
    names = {"pair": "cuMemAlloc and cuMemFree", "launch": "cuLaunchKernel"}
    for name, subject in names.items():
        bare, held = (statistics.median(times[name, is_held]) for is_held in (False, True))
        found = f"{held / bare:.2f} times ({bare:.0f} ns, with the guard {held:.0f} ns)"
        note = f"medians of {TURNS} runs each, called from Python"
        rows.append(seat.row(f"overhead of {subject}", True, "any", found, note))
    return rows


def _of_share(how: str) -> Callable[[Seat], list[Row]]:
    return lambda seat: share_rows(seat, how)


def share_rows(seat: Seat, how: str) -> list[Row]:
    """Kernels of 250 µs, one after the other: half as many with half of the GPU.

    `how`: eager, or graph.
    """
    container = _container(seat, f"share-{how}", core_percent=SHARE_PERCENT)
    found: list[float] = []
    is_right = False
    while not is_right and len(found) < SHARE_TURNS:
        bare = _rate(seat, None, how)
        found.append(100 * _rate(seat, container, how) / bare)
        is_right = abs(found[-1] - SHARE_PERCENT) <= SHARE_POINTS
    nearest = min(found, key=lambda each: abs(each - SHARE_PERCENT))
    wanted = f"{SHARE_PERCENT} ± {SHARE_POINTS:g} %"
    note = f"{bare:.0f} kernels a second without the guard; runs: {len(found)}"
    subject = f"compute share, {how}"
    return [seat.row(subject, is_right, wanted, f"{nearest:.1f} %", note)]


def _rate(seat: Seat, container: Container | None, how: str) -> float:
    """Kernels a second."""
    with seat.running(container, "spin", how, SHARE_SECONDS) as tenant:
        done = tenant.answer()
    return float(done["kernels"] / done["seconds"])
