"""Programs on the stub of NVIDIA's driver, with the memory guard or without it."""

from __future__ import annotations

import os
import platform
import struct
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final

from tests.waiting import HANG_SECONDS

TOOLS: Final = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

from build_native import Built, build_guard, build_stub, build_tenant  # noqa: E402

MIB: Final = 1 << 20
UUID: Final = "GPU-00000000-0000-0000-0000-0000000000f1"
OTHER_UUID: Final = "GPU-00000001-0000-0000-0000-0000000000f1"
MUTABLE: Final = Built(macros=("GUARD_MUTABLE",))
TENANT: Final = Path(__file__).parent
WAYS: Final = (
    *("link", "dlsym", "default", "next", "dlvsym", "deepbind", "dlmopen"),
    *("proc1", "proc2", "proc2f2"),
)
"""How a tenant finds the driver's functions."""
TRUTH_BYTES: Final = 65536
REGION_BYTES: Final = 290816
REGION_HEAD: Final = struct.Struct("<IIQ")
REGION_MAGIC: Final = 0x5247464C


@cache
def guard(build: Built = MUTABLE) -> Path:
    return build_guard(build)


@cache
def tenant(is_linked: bool = True, architecture: str = platform.machine()) -> Path:
    return build_tenant(TENANT, Built(architecture), is_linked=is_linked)


@dataclass(frozen=True)
class Count:
    """Of GPU 0. `truth` and `peak`: the stub's own; the rest is what the guard accounts."""

    truth: int
    peak: int
    used: int
    used_peak: int
    denied: int
    unknown: int


@dataclass
class Machine:
    """A container's files in a folder: limits, region, and the ground truth of the stub.

    `architecture`: of its programs; an emulator runs those of the other one.
    """

    folder: Path
    limit: int = 64 * MIB
    context: int = 0
    core: int = 0
    has_guard: bool = True
    is_view_only: bool = False
    knobs: dict[str, str] = field(default_factory=dict[str, str])
    architecture: str = platform.machine()

    def __post_init__(self) -> None:
        self.truth.write_bytes(bytes(TRUTH_BYTES))
        self.region.write_bytes(REGION_HEAD.pack(REGION_MAGIC, 1, 1).ljust(REGION_BYTES, b"\0"))
        self.limits.write_text(self.limits_text, encoding="utf-8")

    @property
    def truth(self) -> Path:
        return self.folder / "truth"

    @property
    def region(self) -> Path:
        return self.folder / "region"

    @property
    def limits(self) -> Path:
        return self.folder / "limits"

    @property
    def limits_text(self) -> str:
        line = f"limit_bytes {self.limit} core_percent {self.core} context_bytes {self.context}"
        view = "view\n" if self.is_view_only else ""
        return f"version 1\n{view}gpu {UUID} {line}\nregion {self.region}\n"

    @property
    def emulator(self) -> list[str]:
        """What runs a program, before its name. It is static, so only the program is preloaded."""
        if self.architecture == platform.machine():
            return []
        libraries = f"/usr/{self.architecture}-linux-gnu"
        return [f"qemu-{self.architecture}-static", "-L", libraries]

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        build = replace(MUTABLE, architecture=self.architecture)
        preload = {"LD_PRELOAD": str(guard(build))} if self.has_guard else {}
        return {
            **kept,
            **preload,
            "FAIRLEAD_GUARD_LIMITS": str(self.limits),
            "FAIRLEAD_STUB_TRUTH": str(self.truth),
            "FAIRLEAD_AUDIT_REGION": str(self.region),
            "FAIRLEAD_STUB_CONTEXT": str(self.context),
            "LD_LIBRARY_PATH": str(build_stub(Built(self.architecture))),
            **self.knobs,
            **more,
        }

    def start(self, way: str, *words: object, **more: str) -> subprocess.Popen[str]:
        program = tenant(way != "dlmopen", self.architecture)
        return subprocess.Popen(
            [*self.emulator, str(program), way, *map(str, words)],
            env=self.environment(**more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, way: str, *words: object, stdin: str = "", **more: str) -> list[str]:
        """The lines that a tenant printed. Fails where it did not end well, or complained."""
        with self.start(way, *words, **more) as process:
            out, errors = process.communicate(stdin, timeout=HANG_SECONDS)
        assert (process.returncode, errors) == (0, ""), out[-500:]
        return out.splitlines()

    def count(self) -> Count:
        truth = struct.unpack_from("<QQ", self.truth.read_bytes())
        return Count(*truth, *struct.unpack_from("<QQQQ", self.region.read_bytes(), 64))
