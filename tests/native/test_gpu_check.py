"""The part `guard` of `make gpu-check`, on the stub of NVIDIA's driver: a guard that holds its
limits, guards without one hook, and drivers that lack functions.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.native.driver import MIB, TOOLS, TRUTH_BYTES, build_guard, build_stub, guard
from tests.waiting import HANG_SECONDS, wait_until

pytestmark = pytest.mark.turns(2, 0)

CONTEXT = 300
"""MiB that the stub takes for a context. The limits file reserves none for it."""
Rows = dict[str, dict[str, Any]]
Check = Callable[..., tuple[int, Rows, str]]

TORCH = '''
"""What `gpu_tenant` uses of PyTorch, on the driver's functions."""
import os
import types

import gpu_tenant

uint8 = "uint8"
_driver = gpu_tenant.Driver(os.environ["PLAYED_CUDA"], 0)
_driver.begin()


class OutOfMemoryError(RuntimeError):
    pass


class Tensor:
    def __init__(self, size):
        code, self.at = gpu_tenant.ALLOCATORS["cuMemAlloc"].make(_driver, size)
        if code:
            self.at = None
            raise OutOfMemoryError

    def __del__(self):
        if self.at:
            gpu_tenant.ALLOCATORS["cuMemAlloc"].undo(_driver, self.at)


def empty(size, dtype, device):
    assert (dtype, device) == ("uint8", "cuda:0")
    return Tensor(size)


def mem_get_info(ordinal=0):
    return _driver.memory()


cuda = types.SimpleNamespace(
    OutOfMemoryError=OutOfMemoryError,
    synchronize=lambda ordinal: None,
    empty_cache=lambda: None,
    mem_get_info=mem_get_info,
)
'''
CUPY = '''
"""What `gpu_tenant` uses of CuPy, on the played PyTorch."""
import contextlib
import types

import torch

cuda = types.SimpleNamespace(
    Device=lambda ordinal: contextlib.nullcontext(),
    alloc=torch.Tensor,
    memory=types.SimpleNamespace(OutOfMemoryError=torch.OutOfMemoryError),
    runtime=types.SimpleNamespace(memGetInfo=torch.mem_get_info),
)


def get_default_memory_pool():
    return types.SimpleNamespace(free_all_blocks=lambda: None)
'''
SMI = f"""#!{sys.executable}
import ctypes, sys
assert sys.argv[1:] == [
    "--id=0", "--query-gpu=memory.used,memory.total", "--format=csv,noheader,nounits"
], sys.argv
nvml = ctypes.CDLL("libnvidia-ml.so.1")
device, memory = ctypes.c_void_p(), (ctypes.c_uint64 * 3)()
assert nvml.nvmlInit_v2() == 0
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetMemoryInfo(device, memory) == 0
print(f"{{memory[2] >> 20}}, {{memory[0] >> 20}}")
"""

TORCH_LIMITS = (
    *("limit of torch", "limit of torch expandable_segments:True"),
    "limit of torch backend:cudaMallocAsync",
)
ARRAYS = {f"{name}{row}" for name in TORCH_LIMITS for row in ("", ": counted")}


@cache
def shipped_guard() -> Path:
    return build_guard()


Starting = Callable[..., tuple[list[str], dict[str, str]]]


@pytest.fixture
def starting(tmp_path: Path) -> Starting:
    """The words and the environment with which the tool starts."""

    def words(
        *flags: str, library: Path | None = None, stub: Path | None = None, **knobs: str
    ) -> tuple[list[str], dict[str, str]]:
        driver = stub or build_stub()
        truth, report, scratch = (tmp_path / name for name in ("truth", "report.json", "scratch"))
        truth.write_bytes(bytes(TRUTH_BYTES))
        scratch.mkdir(exist_ok=True)
        argv = [sys.executable, str(TOOLS / "gpu_check.py"), "--parts=guard", f"--report={report}"]
        argv += [f"--nvml-library={driver / 'libnvidia-ml.so.1'}"]
        argv += [f"--cuda-library={driver / 'libcuda.so.1'}"]
        argv += [f"--guard-library={library or shipped_guard()}", *flags]
        environment = {
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": str(tmp_path),
            "TMPDIR": str(scratch),
            "LD_LIBRARY_PATH": str(driver),
            "PLAYED_CUDA": str(driver / "libcuda.so.1"),
            "FAIRLEAD_STUB_TRUTH": str(truth),
            "FAIRLEAD_STUB_CONTEXT": str(CONTEXT * MIB),
            **knobs,
        }
        return argv, environment

    return words


@pytest.fixture
def check(starting: Starting, tmp_path: Path) -> Check:
    """Runs the tool: its status, its rows by subject, and what it printed."""

    def run(*flags: str, **more: Any) -> tuple[int, Rows, str]:
        argv, environment = starting(*flags, **more)
        done = subprocess.run(
            argv, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        report = tmp_path / "report.json"
        rows = json.loads(report.read_text())["rows"] if report.exists() else []
        assert not list((tmp_path / "scratch").iterdir()), "its files are gone"
        return done.returncode, {row["subject"]: row for row in rows}, done.stdout + done.stderr

    return run


def play(folder: Path) -> None:
    """PyTorch, CuPy and nvidia-smi, where the tool finds them."""
    (folder / "torch.py").write_text(TORCH, encoding="utf-8")
    (folder / "cupy.py").write_text(CUPY, encoding="utf-8")
    smi = folder / "nvidia-smi"
    smi.write_text(SMI, encoding="utf-8")
    smi.chmod(0o755)


def results(rows: Rows) -> dict[str, str]:
    return {subject: row["result"] for subject, row in rows.items()}


def differing(rows: Rows) -> set[str]:
    return {subject for subject, row in rows.items() if row["result"] == "differs"}


def test_the_guard_holds_every_limit(check: Check, tmp_path: Path) -> None:
    """The stub's memory of 16130 MiB is enough for limits of 2048 and 4096 MiB."""
    play(tmp_path)
    status, rows, printed = check()
    assert status == 0, printed
    assert set(results(rows).values()) == {"ok"}, printed
    assert {row["card"] for row in rows.values()} == {"0"}
    found = {subject: row["found"] for subject, row in rows.items()}
    full = "16 × 128 MiB, then code 2; in use 2348 MiB; then code 0"
    for allocator in ("cuMemAlloc", "cuMemAllocAsync", "cuMemCreate", "cuArrayCreate", "torch"):
        assert found[f"limit of {allocator}"] == full
    assert found["limit of cupy: total"] == "2048 MiB"
    assert found["limit of cuMemAllocAsync: counted"] == "2048 MiB"
    assert found["context of a program"] == f"{CONTEXT} MiB"
    assert found["without the guard"] == f"{24 * 128 + CONTEXT} MiB in use"
    assert found["what nvidia-smi shows"] == "128, 2048"
    assert found["what programs see: cuMemGetInfo"] == "1920 of 2048 MiB free"
    assert found["memory in use of both containers"] == f"{3 * 2048 + 6 * CONTEXT} MiB"
    assert found["overhead of cuLaunchKernel"].startswith(("0.", "1.", "2."))
    assert found["memory in use after all checks"] == "+0 MiB"
    assert len(rows) == 60, sorted(rows)


@pytest.mark.parametrize(
    ("hook", "only", "differ"),
    [
        (
            "cuMemAlloc_v2",
            "limit of cuMemAlloc",
            {
                *("limit of cuMemAlloc", "limit of cuMemAlloc: counted"),
                "limit of cuMemAlloc by cuGetProcAddress",
                "limit of cuMemAlloc by cuGetProcAddress: counted",
            },
        ),
        (
            "cuMemAllocAsync",
            "limit of cuMemAllocAsync",
            {"limit of cuMemAllocAsync", "limit of cuMemAllocAsync: counted"},
        ),
        ("cuMemCreate", "cuMemCreate", {"limit of cuMemCreate", "limit of cuMemCreate: counted"}),
        ("cuMemFree_v2", "limit of cuMemAllocPitch", {"limit of cuMemAllocPitch"}),
        ("cuMemAlloc_v2", "limit of torch", ARRAYS),
        ("cuMemGetInfo_v2", "cuMemCreate", {"limit of cuMemCreate: total"}),
        ("nvmlDeviceGetMemoryInfo", "nvidia-smi", {"what nvidia-smi shows"}),
        ("cuMemGetInfo_v2", "programs see", {"what programs see: cuMemGetInfo"}),
        ("nvmlDeviceGetMemoryInfo", "programs see", {"what programs see: nvmlDeviceGetMemoryInfo"}),
        (
            "nvmlDeviceGetComputeRunningProcesses_v3",
            "programs see",
            {"what programs see: nvmlDeviceGetComputeRunningProcesses"},
        ),
        (
            "cuMemAlloc_v2",
            "two containers",
            {
                "4 processes of a container of 2048 MiB race",
                "2 processes of a container of 4096 MiB race",
                "memory in use of both containers",
            },
        ),
        (
            "cuMemAlloc_v2",
            "kill -9",
            {
                "kill -9 of a process that has all",
                "after it the container has its limit, and no more",
            },
        ),
        ("cuLaunchKernel", "share, eager", {"compute share, eager"}),
        ("cuGraphLaunch", "share, graph", {"compute share, graph"}),
    ],
)
def test_a_guard_without_a_hook_differs(
    check: Check, tmp_path: Path, hook: str, only: str, differ: set[str]
) -> None:
    play(tmp_path)
    status, rows, printed = check(
        f"--guard-only={only}", library=guard(), FAIRLEAD_GUARD_WITHOUT=hook
    )
    assert (status, differing(rows)) == (1, differ), printed


def test_a_control_that_takes_no_more_than_the_limit_differs(check: Check) -> None:
    status, rows, printed = check("--guard-only=without", FAIRLEAD_STUB_REFUSE="cuMemAlloc_v2")
    assert (status, differing(rows)) == (1, {"without the guard"}), printed


def test_a_driver_that_takes_whole_pages_of_2_mib_differs(check: Check) -> None:
    """The guard counts what a program asks for, and this driver takes twice as much."""
    status, rows, printed = check("--guard-only=1 byte", FAIRLEAD_STUB_PAGE=str(2 * MIB))
    subject = "limit of blocks of 2 MiB and 1 byte"
    assert (status, differing(rows)) == (1, {subject, f"{subject}: counted"}), printed
    assert f"in use {1023 * 4 + CONTEXT} MiB" in rows[subject]["found"]


def test_a_context_that_is_larger_than_the_watchdog_allows_differs(check: Check) -> None:
    knobs = {"FAIRLEAD_STUB_CONTEXT": str(700 * MIB)}
    status, rows, printed = check("--guard-only=cont", **knobs)
    assert (status, differing(rows)) == (1, {"context of a program"}), printed
    context = rows["context of a program"]
    assert (context["wanted"], context["found"]) == ("at most 640 MiB", "700 MiB")


def test_memory_that_the_driver_takes_and_does_not_report_differs(check: Check) -> None:
    """Arrays take three times their size, and the driver has no function that reports it."""
    silent = build_stub(without=("cuArrayGetMemoryRequirements",))
    status, rows, printed = check(
        "--guard-only=limit of cuArrayCreate", stub=silent, FAIRLEAD_STUB_ARRAY_TIMES="3"
    )
    assert status == 1, printed
    assert differing(rows) == {"limit of cuArrayCreate", "limit of cuArrayCreate: counted"}


def test_a_function_that_the_driver_lacks_is_skipped(check: Check) -> None:
    lacking = build_stub(without=("cuMipmappedArrayCreate", "cuModuleGetFunction"))
    for only, subject, name in (
        ("Mipmapped", "limit of cuMipmappedArrayCreate", "cuMipmappedArrayCreate"),
        ("eager", "compute share, eager", "cuModuleGetFunction"),
    ):
        status, rows, printed = check(f"--guard-only={only}", stub=lacking)
        assert status == 0, printed
        assert rows[subject]["result"] == "skipped"
        assert rows[subject]["note"] == f"the driver has no {name}"


def test_what_is_not_installed_is_skipped(check: Check) -> None:
    _, rows, printed = check("--guard-only=torch", PATH="/nowhere")
    assert {row["note"] for row in rows.values() if row["result"] == "skipped"} == {
        "torch is not installed"
    }, printed
    _, rows, printed = check("--guard-only=nvidia-smi", PATH="/nowhere")
    assert rows["what nvidia-smi shows"]["note"] == "nvidia-smi is not on PATH", printed


@pytest.mark.parametrize(
    ("flags", "knobs", "note"),
    [
        (["--cuda-library=/nowhere/libcuda.so.1"], {}, "/nowhere/libcuda.so.1 cannot be loaded"),
        ([], {"FAIRLEAD_STUB_GPUS": "0"}, "CUDA sees no GPU"),
        ([], {"FAIRLEAD_STUB_MEMORY": str(1000 * MIB)}, "the GPU has 1000 MiB free"),
    ],
)
def test_a_machine_that_cannot_be_checked_is_skipped_with_the_reason(
    check: Check, flags: list[str], knobs: dict[str, str], note: str
) -> None:
    status, rows, printed = check(*flags, **knobs)
    assert (status, results(rows)) == (0, {"all checks": "skipped"}), printed
    assert rows["all checks"]["note"].startswith(note)


def test_a_small_card_gets_smaller_limits(check: Check) -> None:
    knobs = {"FAIRLEAD_STUB_MEMORY": str(3000 * MIB)}
    status, rows, printed = check("--guard-only=limit of cuMemCreate", **knobs)
    assert status == 0, printed
    assert rows["limit of cuMemCreate: total"]["found"] == "512 MiB"


def test_a_program_that_gets_no_context_differs(check: Check) -> None:
    status, rows, printed = check(FAIRLEAD_STUB_REFUSE="cuDevicePrimaryCtxRetain")
    assert (status, differing(rows)) == (1, {"context of a program"}), printed
    assert rows["context of a program"]["found"] == "cuDevicePrimaryCtxRetain answers 999"


def test_a_check_that_is_ended_leaves_no_program_and_no_file(
    starting: Starting, tmp_path: Path
) -> None:
    """It is ended while a program of a container runs a kernel, or holds memory."""
    argv, environment = starting("--guard-only=share")
    process = subprocess.Popen(
        argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until("a container runs", lambda: tenants(tmp_path), pause_seconds=0.02)
    process.send_signal(signal.SIGTERM)
    printed = "".join(process.communicate(timeout=HANG_SECONDS))
    assert process.returncode == 130, printed
    assert not tenants(tmp_path)
    assert not list((tmp_path / "scratch").iterdir())


def tenants(folder: Path) -> list[str]:
    """The programs of containers whose limits file is below this folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "environ").read_bytes()
        except OSError:
            continue
        if f"FAIRLEAD_GUARD_LIMITS={folder}".encode() in words:
            found.append(place.name)
    return found


def test_an_unknown_part_is_refused(check: Check) -> None:
    status, rows, printed = check("--parts=guards")
    assert (status, rows) == (1, {})
    assert "`guards` is no part of this check" in printed
    assert "exporter, guard" in printed
