"""What programs in a container see of the GPU: their grant, and no other process.

Specification: docs/spec/gpu-sharing.md#resolution-by-the-guard. 4 of 15 units of a GPU of 16130
MiB are 4301 MiB.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pynvml
import pytest
from tests.native.driver import MIB, Machine
from tests.programs import run_program
from tests.waiting import HANG_SECONDS

from guard_table import read_table

GRANT = 4301 * MIB
HELD = 1000 * MIB

READER = """
import ctypes, json, os, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
device = ctypes.c_void_p()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
def look():
    found = {}
    plain = (ctypes.c_ulonglong * 3)()
    found["memory"] = [nvml.nvmlDeviceGetMemoryInfo(device, plain), *plain]
    later = (ctypes.c_ulonglong * 5)(2)
    found["memory_v2"] = [nvml.nvmlDeviceGetMemoryInfo_v2(device, later), *later[1:]]
    for kind in ("Compute", "Graphics", "MPSCompute"):
        for version in ("", "_v2", "_v3"):
            count = ctypes.c_uint(8)
            name = f"nvmlDeviceGet{kind}RunningProcesses{version}"
            code = getattr(nvml, name)(device, ctypes.byref(count), (ctypes.c_ulonglong * 64)())
            found[name] = [code, count.value]
    count = ctypes.c_uint(8)
    pids = (ctypes.c_uint * 8)()
    code = nvml.nvmlDeviceGetAccountingPids(device, ctypes.byref(count), pids)
    found["nvmlDeviceGetAccountingPids"] = [code, count.value]
    count = ctypes.c_uint(8)
    code = nvml.nvmlDeviceGetProcessUtilization(
        device, (ctypes.c_ulonglong * 64)(), ctypes.byref(count), ctypes.c_ulonglong(0)
    )
    found["nvmlDeviceGetProcessUtilization"] = [code, count.value]
    found["nvmlDeviceGetAccountingStats"] = [
        nvml.nvmlDeviceGetAccountingStats(device, 4242, (ctypes.c_ulonglong * 16)()), 0
    ]
    details = (ctypes.c_ulonglong * 3)(1, 8, ctypes.addressof((ctypes.c_ulonglong * 64)()))
    found["nvmlDeviceGetRunningProcessDetailList"] = [
        nvml.nvmlDeviceGetRunningProcessDetailList(device, details), details[1] & 0xFFFFFFFF
    ]
    used = (ctypes.c_ulonglong * 3)(1 | 8 << 32, 0, ctypes.addressof((ctypes.c_ulonglong * 64)()))
    found["nvmlDeviceGetProcessesUtilizationInfo"] = [
        nvml.nvmlDeviceGetProcessesUtilizationInfo(device, used), used[0] >> 32
    ]
    limits = (ctypes.c_ulonglong * 4)()
    found["limits"] = [nvml.nvmlDeviceGetMemoryLimits_v1(device, limits), *limits[1:]]
    found["strange limits"] = nvml.nvmlDeviceGetMemoryLimits_v1(device, None)
    found["strange"] = nvml.nvmlDeviceGetMemoryInfo(device, None)
    return found
looks = {"": look()}
for name in sys.argv[1:]:
    os.environ["FAIRLEAD_GUARD_WITHOUT"] = name
    looks[name] = look()
print(json.dumps(looks))
"""


def looks(machine: Machine, *without: str) -> dict[str, dict[str, list[int]]]:
    """What each view shows; beside it the same without a hook, by its name."""
    done = run_program([sys.executable, "-c", READER, *without], env=machine.environment())
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, dict[str, list[int]]] = json.loads(done.stdout)
    return found


def read(machine: Machine) -> dict[str, list[int]]:
    return looks(machine)[""]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, GRANT)


def test_nvml_shows_the_grant_and_what_the_container_uses(machine: Machine) -> None:
    holder = machine.start("dlsym", "hold", HELD)
    assert holder.stdout
    assert holder.stdout.readline() == "held 0\n"
    found = read(machine)
    holder.communicate(timeout=HANG_SECONDS)
    assert found["memory"] == [0, GRANT, GRANT - HELD, HELD]
    assert found["memory_v2"] == [0, GRANT, 0, GRANT - HELD, HELD]
    assert found["limits"] == [0, GRANT, GRANT, HELD]
    assert found["strange"] == found["strange limits"] == 2


@pytest.mark.parametrize(("driver", "shown"), [(3000 * MIB, 3000 * MIB), (9000 * MIB, GRANT)])
def test_a_limit_of_the_driver_is_shown_where_it_is_lower(
    machine: Machine, driver: int, shown: int
) -> None:
    machine.knobs["FAIRLEAD_STUB_HARD_LIMIT"] = str(driver)
    assert read(machine)["limits"] == [0, MIB, shown, 0]


def test_no_field_of_nvml_is_an_amount_of_memory() -> None:
    fields = {name for name in vars(pynvml) if name.startswith("NVML_FI_DEV_")}
    assert len(fields) > 100
    assert {name for name in fields if re.search("MEM|_FB_|BAR1", name)} == {
        "NVML_FI_DEV_MEMORY_TEMP",
        "NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT",
    }


NO_PROCESS = {
    "nvmlDeviceGetAccountingStats": [6, 0],
    "nvmlDeviceGetProcessUtilization": [6, 0],
}


def test_no_process_of_another_container_is_shown(machine: Machine) -> None:
    found = read(machine)
    lists = {name: value for name, value in found.items() if name.startswith("nvml")}
    assert len(lists) == 14
    assert lists == {name: NO_PROCESS.get(name, [0, 0]) for name in lists}
    machine.has_guard = False
    shown = read(machine)
    assert [shown[name] for name in lists] == [[0, 0 if "Stats" in name else 1] for name in lists]


def test_cuda_shows_the_grant(machine: Machine) -> None:
    out = machine.run("proc2", "fill", "cuMemAlloc_v2", HELD, 2)
    assert out == [
        f"cuMemAlloc_v2 granted 2 code 0 free {GRANT - 2 * HELD} total {GRANT}",
        f"cuMemAlloc_v2 freed 0 free {GRANT} total {GRANT}",
    ]


def test_a_view_that_is_taken_out_shows_something_else(machine: Machine) -> None:
    hooks = [hook.export for hook in read_table().hooks if hook.library == "nvml"]
    shown = looks(machine, *hooks)
    sane = shown.pop("")
    assert len(shown) > 14
    for export, found in shown.items():
        seen = [name for name, value in found.items() if value != sane[name]]
        print(f"without {export}: {seen}")
        assert seen, export
