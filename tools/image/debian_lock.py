"""Which Debian packages the image contains, each file by version and SHA-256.

`python3 tools/image_lock.py` writes the lock file from Debian's package index.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

LOCK = Path(__file__).with_name("debian.lock.json")
LOCK_VARIABLE = "FAIRLEAD_IMAGE_LOCK"
"""A path: another lock file to use, for tests on a day when Debian has newer packages."""
SUITE = "bookworm"
"""Debian 12: Python 3.11, which Fairlead's lock files are solved for."""
ARCHITECTURES = ("amd64", "arm64")
PACKAGES = (
    "ca-certificates",
    "gcc-12-base",  # the licence of the next two
    "libgcc-s1",
    "libstdc++6",  # wheels in C++: grpcio, google-re2
    "libbz2-1.0",
    "libc6",
    "libexpat1",
    "libffi8",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libsqlite3-0",
    "libssl3",
    "libuuid1",
    "media-types",  # the content types of the console's files
    "python3.11-minimal",
    "tzdata",
    "zlib1g",
)
"""What Python and the wheels load. What else these packages depend on is left out: it serves
maintainer scripts (debconf, dpkg, tar), or modules that `debian_root` leaves out.
"""


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """One .deb. `architecture` is that of the image, also where the file is for all of them."""

    architecture: str
    name: str
    version: str
    file: str
    size: int
    sha256: str


def lock_file() -> Path:
    return Path(os.environ.get(LOCK_VARIABLE) or LOCK)


def read_lock(architecture: str, lock: Path | None = None) -> tuple[LockedPackage, ...]:
    """The packages of an image of `architecture`, by name; by default from `lock_file()`."""
    lock = lock or lock_file()
    rows = json.loads(lock.read_text(encoding="utf-8"))["packages"]
    return tuple(LockedPackage(**row) for row in rows if row["architecture"] == architecture)


def lock_text(packages: list[LockedPackage]) -> str:
    """The lock file: one line for each package, so that a diff shows what changes."""
    ordered = sorted(packages, key=lambda each: (each.architecture, each.name))
    rows = ",\n".join(f"    {json.dumps(asdict(each))}" for each in ordered)
    return f'{{\n  "suite": "{SUITE}",\n  "packages": [\n{rows}\n  ]\n}}\n'
