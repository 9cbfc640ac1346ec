"""Limits files and regions that a process must not believe.

Specification: docs/spec/gpu-sharing.md#limits-file-and-region.
"""

from __future__ import annotations

import random
import re
import struct
from pathlib import Path

import pytest
from tests.native.driver import MIB, OTHER_UUID, REGION_BYTES, UUID, Machine, tenant
from tests.programs import run_program
from tests.waiting import HANG_SECONDS

from build_native import build_stub

BLOCK = 4 * MIB
NOTHING = "context code 2\n"
COMPLAINT = "fairlead-guard: the limits file is not understood; no GPU memory is granted\n"
LINE = f"gpu {UUID} limit_bytes 67108864 core_percent 0 context_bytes 0\n"


def fill(machine: Machine) -> tuple[str, str]:
    """What a program printed that allocates 40 blocks, and its errors. It must not crash."""
    process = machine.start("dlsym", "fill", "cuMemAlloc_v2", BLOCK, 40)
    out, errors = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 0
    return out.partition(" free")[0], errors


MALFORMED = {
    "empty": "",
    "a later version": "version 2\n" + LINE + "region {region}\n",
    "no region": "version 1\n" + LINE,
    "a relative region": "version 1\n" + LINE + "region region\n",
    "two regions": "version 1\n" + LINE + "region {region}\nregion {region}\n",
    "two lines for one GPU": "version 1\n" + LINE + LINE + "region {region}\n",
    "a line that is cut": "version 1\n" + LINE + "region {region}",
    "a leading zero": "version 1\n" + LINE.replace(" 67", " 067") + "region {region}\n",
    "a negative limit": "version 1\n" + LINE.replace(" 67", " -67") + "region {region}\n",
    "2^63 bytes": "version 1\n" + LINE.replace("67108864", str(1 << 63)) + "region {region}\n",
    "a share above 100": "version 1\n" + LINE.replace("percent 0", "percent 101") + "region /r\n",
    "a strange line": "version 1\n" + LINE + "region {region}\nmore\n",
    "a trailing blank": "version 1 \n" + LINE + "region {region}\n",
    "a byte of zero": "version 1\n\0" + LINE + "region {region}\n",
    "a long UUID": "version 1\n" + LINE.replace("GPU-", "GPU-" + "a" * 64) + "region {region}\n",
    "a long region": "version 1\n" + LINE + "region /" + "a" * 300 + "\n",
    "33 GPUs": "version 1\n" + "".join(LINE.replace("GPU-", f"GPU-{n}") for n in range(33)),
    "100 KiB": "version 1\n" + "\n" * 100_000,
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_a_malformed_limits_file_grants_nothing_and_leaves_one_line(
    tmp_path: Path, fault: str
) -> None:
    machine = Machine(tmp_path)
    text = MALFORMED[fault].replace("{region}", str(machine.region))
    machine.limits.write_text(text, encoding="utf-8")
    assert fill(machine) == (NOTHING, COMPLAINT)
    assert machine.count().peak == 0


def test_without_a_limits_file_the_guard_is_inactive(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.limits.unlink()
    assert fill(machine) == ("cuMemAlloc_v2 granted 40 code 0", "")


def test_a_gpu_that_is_not_listed_has_no_memory(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    text = machine.limits_text.replace(UUID, OTHER_UUID)
    machine.limits.write_text(text, encoding="utf-8")
    assert fill(machine) == (NOTHING, "")


def test_a_listed_gpu_that_is_absent_changes_nothing_for_the_others(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    absent = machine.limits_text.splitlines()[1].replace(UUID, "GPU-absent")
    text = machine.limits_text.replace("gpu ", f"{absent}\ngpu ", 1)
    machine.limits.write_text(text, encoding="utf-8")
    assert fill(machine) == ("cuMemAlloc_v2 granted 16 code 2", "")
    assert machine.count().peak == machine.limit


LACKED = {
    "sizes": (
        *("cuArrayGetMemoryRequirements", "cuMipmappedArrayGetMemoryRequirements"),
        *("cuMemGetAddressRange_v2", "cuMemPoolGetAttribute", "cuDeviceGetGraphMemAttribute"),
        *("cuDeviceGetMemPool", "cuDeviceGetAttribute", "cuDevicePrimaryCtxGetState"),
        *("cuStreamIsCapturing", "cuStreamGetCtx", "cuGraphChildGraphNodeGetGraph"),
    ),
    "graphs": ("cuGraphGetNodes",),
    "the current context": ("cuCtxGetCurrent",),
    "UUIDs": ("cuDeviceGetUuid", "cuDeviceGetUuid_v2"),
}


@pytest.mark.parametrize("lacked", LACKED)
def test_a_driver_that_lacks_functions_grants_less_and_crashes_nothing(
    tmp_path: Path, lacked: str
) -> None:
    knobs = {"LD_LIBRARY_PATH": str(build_stub(without=LACKED[lacked]))}
    machine = Machine(tmp_path, context=2 * BLOCK, knobs=knobs)
    process = machine.start("dlsym", "fill", "all", BLOCK, 40)
    out, errors = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, errors) == (0, "")
    codes = set(re.findall(r" code (\d+)", out))
    assert codes == {"2"}
    assert machine.count().peak <= machine.limit


@pytest.mark.parametrize("code", [1, 12345, -7])
def test_an_unknown_code_of_the_driver_comes_through_and_costs_nothing(
    tmp_path: Path, code: int
) -> None:
    knobs = {"FAIRLEAD_STUB_FAIL_EVERY": "3", "FAIRLEAD_STUB_FAIL_CODE": str(code)}
    machine = Machine(tmp_path, knobs=knobs)
    assert fill(machine) == (f"cuMemAlloc_v2 granted 2 code {code}", "")
    count = machine.count()
    assert (count.used, count.peak) == (0, 2 * BLOCK)


REGIONS = {
    "empty": lambda full: b"",
    "too small": lambda full: full[:4096],
    "another magic": lambda full: b"\0" + full[1:],
    "a later version": lambda full: full[:4] + b"\2" + full[5:],
}


@pytest.mark.parametrize("fault", REGIONS)
def test_a_region_of_another_layout_grants_nothing(tmp_path: Path, fault: str) -> None:
    machine = Machine(tmp_path)
    machine.region.write_bytes(REGIONS[fault](machine.region.read_bytes()))
    out, errors = fill(machine)
    assert out == NOTHING
    assert errors == "fairlead-guard: the region file is not one of this version; " + (
        "no GPU memory is granted\n"
    )


def test_a_region_that_is_absent_grants_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.region.unlink()
    assert fill(machine)[0] == NOTHING


NO_ROOM = {
    "read-only": (
        "mount --bind {region} {region} && mount -o remount,ro,bind {region}",
        "the region file cannot be opened for writing",
    ),
    "on a full tmpfs": (
        "mount -t tmpfs -o size=64k none {region.parent}/small"
        " && head -c 16 {region} > {region.parent}/small/region"
        " && truncate -s 290816 {region.parent}/small/region",
        "the region file is not one of this version",
    ),
}


@pytest.mark.parametrize("fault", NO_ROOM)
def test_a_region_that_cannot_be_written_grants_nothing_and_crashes_nothing(
    tmp_path: Path, fault: str
) -> None:
    machine = Machine(tmp_path)
    small = tmp_path / "small"
    small.mkdir()
    prepare, complaint = NO_ROOM[fault]
    if "tmpfs" in fault:
        text = machine.limits_text.replace(str(machine.region), f"{small}/region")
        machine.limits.write_text(text, encoding="utf-8")
    words = ("fill", "cuMemAlloc_v2", str(BLOCK), "40")
    done = run_program(
        [
            *("unshare", "--mount", "--map-root-user", "sh", "-c"),
            prepare.format(region=machine.region) + ' && exec "$@"',
            *("sh", str(tenant()), "dlsym", *words),
        ],
        env=machine.environment(),
    )
    assert (done.returncode, done.stdout) == (0, NOTHING)
    assert done.stderr == f"fairlead-guard: {complaint}; no GPU memory is granted\n"


def test_a_region_of_random_bytes_crashes_nothing(tmp_path: Path) -> None:
    chance = random.Random(31)
    for _ in range(12):
        machine = Machine(tmp_path)
        head = machine.region.read_bytes()[:8]
        words = [chance.choice((0, 1, 1 << 63, chance.getrandbits(64))) for _ in range(4000)]
        noise = struct.pack("<4000Q", *words)
        machine.region.write_bytes((head + noise).ljust(REGION_BYTES, b"\xff"))
        fill(machine)
        assert machine.count().peak <= machine.limit
