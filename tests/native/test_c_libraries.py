"""The guard as it is shipped, in programs on the C libraries of other releases than the machine's.

Specification: docs/spec/gpu-sharing.md#resolution-by-the-guard.

A container's root folder has that release's library and loader, and `/etc/ld.so.preload` names the
guard. Before glibc 2.34 `dlsym` is in a library of its own, and has another version.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.native.driver import MIB, TENANT, WAYS, Machine
from tests.programs import run_program

from build_native import Built, build_guard, build_stub, build_tenant
from c_libraries import Release, read_releases
from progress import StepFailed

BLOCK = 4 * MIB
LIMIT = 64 * MIB
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "")
RELEASES = {each.version: each for each in read_releases(ARCHITECTURE)}


def root_of(release: Release) -> Path:
    try:
        return release.unpacked()
    except StepFailed as failed:
        pytest.skip(f"glibc {release.version} cannot be had: {failed.what}")


class Container:
    """A root folder with programs that were compiled for the oldest of the releases."""

    def __init__(self, folder: Path, release: Release) -> None:
        oldest = next(iter(RELEASES.values()))
        root_of(oldest)
        self.root = folder / "root"
        shutil.copytree(
            root_of(release), self.root, symlinks=True, ignore=shutil.ignore_patterns("gconv")
        )
        build = Built(options=("-O2", *oldest.options()))
        stub = build_stub(build)
        self.files = folder / "files"
        shutil.copytree(stub, self.files, ignore=shutil.ignore_patterns("*.c", "*.map"))
        for is_linked in (True, False):
            tenant = build_tenant(TENANT, build, is_linked=is_linked, stub=stub)
            shutil.copy(tenant, self.files / f"tenant-{is_linked}")
        shutil.copy(build_guard(Built()), self.files)
        for path in (self.files, self.root / "proc"):
            (self.root / str(path).lstrip("/")).mkdir(parents=True, exist_ok=True)
        (self.root / "proc").mkdir(exist_ok=True)
        self.preload = self.root / "etc" / "ld.so.preload"
        self.preload.parent.mkdir(exist_ok=True)
        self.preload.write_text(f"{self.files}/libfairlead-guard.so\n", encoding="utf-8")
        self.machine = Machine(self.files, LIMIT, has_guard=False)

    def run(self, program: str, *words: object) -> tuple[int, str, str]:
        """Exit status, stdout and stderr of a program in the container."""
        binds = f"mount --rbind /proc {self.root}/proc && mount --bind {self.files} {{0}}".format(
            f"{self.root}{self.files}"
        )
        done = run_program(
            [
                *("unshare", "--mount", "--map-root-user", "sh", "-c"),
                f'{binds} && exec chroot "{self.root}" "$@"',
                *("sh", program, *map(str, words)),
            ],
            env=self.machine.environment(LD_LIBRARY_PATH=str(self.files)),
        )
        return done.returncode, done.stdout, done.stderr

    def fill(self, way: str) -> tuple[int, str, str]:
        words = (way, "fill", "cuMemAlloc_v2", BLOCK, 40)
        return self.run(f"{self.files}/tenant-{way != 'dlmopen'}", *words)


@pytest.fixture(params=RELEASES, scope="module")
def container(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Container]:
    yield Container(tmp_path_factory.mktemp("container"), RELEASES[request.param])


def test_a_program_of_the_release_starts_without_a_message(container: Container) -> None:
    """The loader prints one for a library that it cannot preload."""
    code, out, errors = container.run("/usr/bin/getconf", "GNU_LIBC_VERSION")
    assert (code, errors) == (0, "")
    assert out.removeprefix("glibc ").strip() in RELEASES


@pytest.mark.parametrize("way", WAYS)
def test_the_limit_holds_however_a_program_finds_the_driver(container: Container, way: str) -> None:
    code, out, errors = container.fill(way)
    assert (code, errors) == (0, "")
    filled, freed = out.splitlines()
    assert filled == f"cuMemAlloc_v2 granted 16 code 2 free 0 total {LIMIT}"
    assert freed == f"cuMemAlloc_v2 freed 0 free {LIMIT} total {LIMIT}"
    assert container.machine.count().peak == LIMIT


def test_without_the_preload_file_nothing_is_limited(container: Container) -> None:
    text = container.preload.read_text(encoding="utf-8")
    container.preload.unlink()
    try:
        code, out, errors = container.fill("dlsym")
    finally:
        container.preload.write_text(text, encoding="utf-8")
    assert (code, errors) == (0, "")
    assert out.startswith("cuMemAlloc_v2 granted 40 code 0 ")
