"""C libraries of other Debian releases, for tests of programs on them.

`python3 tools/c_libraries.py` writes tools/c_libraries.json: each package by version and SHA-256.
The packages are unpacked into a folder of the cache, and never installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from image import apt
from image.debian_lock import ARCHITECTURES, LockedPackage
from locks import only_one
from progress import StepFailed, cache_home, run_step

LOCK: Final = Path(__file__).with_suffix(".json")
SUITES: Final = ("bullseye", "trixie")
"""Debian 11 has glibc 2.31, Debian 13 has 2.41. The mirrors have no older release any more."""
PACKAGES: Final = ("libc6", "libc6-dev", "libc-bin")
"""The library and its loader; what programs are compiled with; programs of that release."""


@dataclass(frozen=True)
class Release:
    """The C library of one Debian release on one architecture."""

    suite: str
    packages: tuple[LockedPackage, ...]

    @property
    def architecture(self) -> str:
        return self.packages[0].architecture

    @property
    def version(self) -> str:
        """Of glibc: `2.31`."""
        return self.packages[0].version.partition("-")[0]

    @property
    def _home(self) -> Path:
        return cache_home() / "c-libraries"

    @property
    def _index(self) -> Path:
        return self._home / "apt" / f"{self.suite}-{self.architecture}"

    def unpacked(self) -> Path:
        """A root folder with the packages, from the cache or by this machine's apt.

        Raises StepFailed where they cannot be had, or differ from the lock file.
        """
        digest = hashlib.sha256("".join(each.sha256 for each in self.packages).encode())
        root = self._home / f"{self.suite}-{digest.hexdigest()[:16]}"
        if root.exists():
            return root
        with only_one(cache_home() / "c-libraries.lock", "C libraries of other releases"):
            if not root.exists():
                self._unpack(root)
        return root

    def options(self) -> tuple[str, ...]:
        """For the compiler: headers and libraries of this release, and the machine's headers of the
        kernel, which no C library has. Raises StepFailed as `unpacked`.
        """
        root, triplet = self.unpacked(), f"{platform.machine()}-linux-gnu"
        libraries = [root / "usr" / "lib" / triplet, root / "lib" / triplet]
        return (
            f"--sysroot={root}",
            f"-B{libraries[0]}",
            *(f"-L{each}" for each in libraries),
            *("-idirafter", "/usr/include", "-idirafter", f"/usr/include/{triplet}"),
        )

    def _unpack(self, root: Path) -> None:
        self._home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._home) as scratch:
            folder, made = Path(scratch), Path(scratch) / "root"
            wanted = [f"{each.name}={each.version}" for each in self.packages]
            try:
                ask(self._index, self.suite, self.architecture, folder, "download", *wanted)
            except StepFailed as failed:
                hint = (
                    "where Debian has newer versions by now, `python3 tools/c_libraries.py` helps"
                )
                raise StepFailed(failed.what, hint) from None
            for package in self.packages:
                file = folder / package.file
                found = hashlib.sha256(file.read_bytes()).hexdigest()
                if found != package.sha256:
                    raise StepFailed(
                        f"{package.file} has the SHA-256 {found}; the lock file requires "
                        f"{package.sha256}",
                        "check where apt of this machine gets its packages",
                    )
                subprocess.run(["dpkg-deb", "-x", str(file), str(made)], check=True, timeout=120)
            _point_inside(made)
            for name in ("lib", "lib64"):  # since Debian 12 packages have these below usr alone
                if not (made / name).exists():
                    (made / name).symlink_to(f"usr/{name}")
            made.rename(root)


def _point_inside(root: Path) -> None:
    """Links to absolute paths stay in the root folder."""
    for link in [path for path in root.rglob("*") if path.is_symlink()]:
        target = link.readlink()
        if target.is_absolute():
            inside = root / target.relative_to("/")
            link.unlink()
            link.symlink_to(os.path.relpath(inside, link.parent))


def read_releases(architecture: str) -> tuple[Release, ...]:
    """The releases of the lock file for Debian's `architecture`, the oldest first."""
    rows = json.loads(LOCK.read_text(encoding="utf-8"))
    return tuple(
        Release(suite, packages)
        for suite in SUITES
        if (
            packages := tuple(
                LockedPackage(**row) for row in rows[suite] if row["architecture"] == architecture
            )
        )
    )


def ask(index: Path, suite: str, architecture: str, folder: Path, *words: str) -> None:
    """`apt-get WORDS` in `folder`, on a new index of the suite. Raises StepFailed."""
    apt.begin_index(index, _sources(suite))
    log = cache_home() / "logs" / f"c-libraries-{suite}-{architecture}.log"
    command = ["apt-get", *apt.index_options(index, architecture)]
    run_step("apt-get update", [*command, "update"], log)
    run_step(f"packages of {suite}", [*command, *words], log, cwd=folder)


def _sources(suite: str) -> str:
    """The machine's own lines for its release, with another suite in its place."""
    own = Path("/etc/os-release")
    text = own.read_text(encoding="utf-8") if own.exists() else ""
    codename = re.search(r"^VERSION_CODENAME=(\w+)$", text, re.MULTILINE)
    lines = [
        line.replace(f" {release} ", f" {suite} ")
        for release, line in apt.machine_sources()
        if codename and release == codename[1] and line.endswith(" main")
    ]
    if not lines:
        raise StepFailed(
            "apt of this machine has no source of its own Debian release",
            "other releases come from the same place; add it to the sources",
        )
    return "".join(f"{line}\n" for line in lines)


def _newest(suite: str, architecture: str) -> list[LockedPackage]:
    index = cache_home() / "c-libraries" / "apt" / f"{suite}-{architecture}"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        ask(index, suite, architecture, folder, "download", *PACKAGES)
        return [
            LockedPackage(
                architecture,
                name,
                version.replace("%3a", ":"),
                file.name,
                file.stat().st_size,
                hashlib.sha256(file.read_bytes()).hexdigest(),
            )
            for package in PACKAGES
            for file in folder.glob(f"{package}_*.deb")
            for name, version in [file.name.split("_")[:2]]
        ]


def main() -> int:
    try:
        suites = {
            suite: [each for of in ARCHITECTURES for each in _newest(suite, of)] for suite in SUITES
        }
    except StepFailed as failed:
        print(f"error: {failed.what}", file=sys.stderr)
        return 1
    parts = [
        f'  "{suite}": [\n'
        + ",\n".join(f"    {json.dumps(asdict(each))}" for each in packages)
        + "\n  ]"
        for suite, packages in suites.items()
    ]
    LOCK.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
