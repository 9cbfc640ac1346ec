"""Each way around the guard takes memory beyond the limit, and the watchdog reports it.

Specification: docs/spec/gpu-sharing.md#watchdog. native/escapes.toml lists the ways. The programs
run in a container's view of `/etc`, where `ld.so.preload` names the guard as it is shipped.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from tests.native.driver import MIB, OTHER_UUID, TENANT, TRUTH_BYTES, UUID, Machine, guard
from tests.waiting import HANG_SECONDS

from build_native import Built, build_escape
from fairlead.model.devices.driver import ProcessHome, ProcessMemory
from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.kubelet import GivenShare
from fairlead.model.pod import Pod
from fairlead.rules.devices.watchdog import (
    MemoryWatchdog,
    OverGrant,
    OverGrantPolicy,
    memory_uses,
)
from guard_table import NATIVE, read_escapes

LIMIT, TAKEN = 64 * MIB, 1024 * MIB
ROOMY = 4096 * MIB
TRUTH_SLOTS, TRUTH_SLOT = 176, struct.Struct("<9Q")
UUIDS = (UUID, OTHER_UUID)
DYNAMIC, STATIC, MUSL = Built(), Built(options=("-O2", "-static")), Built(c_library="musl")
NESTED = ("unshare", "--mount", "sh", "-c", 'umount /etc && exec "$@"', "sh")


@dataclass(frozen=True)
class Play:
    """`way`: how the program behaves. `before`: what runs it in its container."""

    way: str
    build: Built = DYNAMIC
    before: tuple[str, ...] = ()
    is_granted: bool = True


PLAIN = Play("plain")
PLAYS: Final = {
    "static": Play("plain", STATIC),
    "musl": Play("plain", MUSL),
    "walk": Play("walk"),
    "deepbind": Play("deepbind"),
    "namespace": Play("namespace"),
    "device": Play("device"),
    "region": Play("region"),
    "ptrace": Play("ptrace"),
    "nested": Play("plain", before=NESTED),
    "graphics": Play("graphics"),
    "managed": Play("managed"),
    "ungranted": Play("plain", is_granted=False),
}


class Container(Machine):
    """A machine whose files a program finds by its `/etc` alone, as in a container."""

    @property
    def limits_text(self) -> str:
        lines = (
            f"gpu {uuid} limit_bytes {size} core_percent 0 context_bytes 0\n"
            for uuid, size in zip(UUIDS, self.sizes, strict=True)
        )
        return f"version 1\n{''.join(lines)}region {self.region}\n"

    sizes: tuple[int, int] = (LIMIT, LIMIT)

    def inside(self, *argv: object) -> list[str]:
        """The command that runs a program in this container."""
        etc = self.folder / "etc"
        place = etc / "fairlead" / "gpu"
        place.mkdir(parents=True)
        shutil.copy("/etc/ld.so.cache", etc)
        (etc / "ld.so.preload").write_text(f"{guard(DYNAMIC)}\n", encoding="utf-8")
        (place / "limits").write_text(self.limits_text, encoding="utf-8")
        bind = f'mount --bind {etc} /etc && exec "$@"'
        return ["unshare", "--mount", "--map-root-user", "sh", "-c", bind, "sh", *map(str, argv)]

    def cleared(self, **more: str) -> dict[str, str]:
        """An environment that names neither the guard nor its limits."""
        names = ("LD_PRELOAD", "FAIRLEAD_GUARD_LIMITS")
        return {
            name: value for name, value in self.environment(**more).items() if name not in names
        }

    def processes(self) -> list[ProcessMemory]:
        """What the driver counts for each process."""
        found = []
        truth = self.truth.read_bytes()
        for at in range(TRUTH_SLOTS, TRUTH_BYTES - TRUTH_SLOT.size, TRUTH_SLOT.size):
            pid, *each = TRUTH_SLOT.unpack_from(truth, at)
            found += [
                ProcessMemory(pid, uuid, size / MIB)
                for uuid, size in zip(UUIDS, each, strict=False)
                if pid and size
            ]
        return found

    def peaks(self) -> tuple[int, int]:
        numbers = struct.unpack_from("<4Q", self.truth.read_bytes())
        return numbers[1], numbers[3]


@dataclass(frozen=True)
class Played:
    """`code`: what the program got; `reports`: of the watchdog, period by period."""

    code: int
    peaks: tuple[int, int]
    reports: tuple[list[OverGrant], ...]


def run(folder: Path, play: Play) -> Played:
    container = Container(folder)
    container.sizes = (ROOMY, LIMIT) if play.way == "managed" else (LIMIT, LIMIT)
    program = build_escape(TENANT / "escapes", play.build, has_driver=play.build is not DYNAMIC)
    words = (program, play.way, TAKEN, container.region, LIMIT)
    argv = container.inside(*play.before, *words) if play.is_granted else [str(w) for w in words]
    environment = container.cleared(
        ESCAPE_SEEKER=str(program.parent / "seeker.so"),
        ESCAPE_GRAPHICS=str(program.parent / "graphics.so"),
    )
    with subprocess.Popen(
        argv,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        code = process.stdout.readline()
        watchdog = MemoryWatchdog()
        reports = tuple(
            reported(watchdog, container.processes(), container.sizes, play) for _ in range(2)
        )
        _, errors = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, errors) == (0, ""), code
    return Played(int(code.removeprefix("code ")), container.peaks(), reports)


def reported(
    watchdog: MemoryWatchdog, processes: list[ProcessMemory], sizes: tuple[int, int], play: Play
) -> list[OverGrant]:
    """One period of the watchdog."""
    given = [
        GivenShare("ns", "p", "u", "c", Grant(uuid, index, 1, size // MIB), "t")
        for index, (uuid, size) in enumerate(zip(UUIDS, sizes, strict=True))
        if play.is_granted
    ]
    home = ProcessHome("u", "t" if play.is_granted else "")
    homes = {process.pid: home for process in processes}
    uses = memory_uses(processes, homes, given, [Pod("ns", "p", uid="u")], {})
    return watchdog.look(uses, OverGrantPolicy.REPORT)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Play], Played]:
    return cache(lambda play: run(tmp_path_factory.mktemp("escape"), play))


def test_every_listed_escape_is_played_and_stands_in_the_readme() -> None:
    escapes = read_escapes()
    assert {escape.name for escape in escapes} == set(PLAYS)
    readme = " ".join((NATIVE / "README.md").read_text(encoding="utf-8").split())
    assert "cooperative" in readme
    assert [escape.what for escape in escapes if escape.what not in readme] == []


def test_a_program_that_goes_no_way_around_is_refused_and_not_reported(
    played: Callable[[Play], Played],
) -> None:
    assert played(PLAIN) == Played(2, (LIMIT, 0), ([], []))


def test_a_program_without_cuda_prints_no_message(tmp_path: Path) -> None:
    container = Container(tmp_path)
    argv, shell = container.inside("ls", "/etc"), container.cleared()
    done = subprocess.run(argv, env=shell, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["fairlead", "ld.so.cache", "ld.so.preload"]
    assert done.stderr == ""


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="the guard does not stop it")
@pytest.mark.parametrize("escape", PLAYS)
def test_an_escape_stays_within_the_limit(played: Callable[[Play], Played], escape: str) -> None:
    assert all(peak <= LIMIT for peak in played(PLAYS[escape]).peaks)


@pytest.mark.parametrize("escape", PLAYS)
def test_the_watchdog_reports_an_escape_in_its_first_period_and_while_it_lasts(
    played: Callable[[Play], Played], escape: str
) -> None:
    first, second = played(PLAYS[escape]).reports
    assert [(each.periods, each.is_new) for each in first] == [(1, True)]
    assert [(each.periods, each.is_new) for each in second] == [(2, False)]
    assert first[0].use.used_mib == TAKEN / MIB
