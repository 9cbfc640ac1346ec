"""The bundle of `make bundle`, one tar for a cluster without internet.

Which paths it may have, and whether its files are those that its SHA256SUMS lists.

The tar is not compressed: what is large in it is compressed already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from fairlead.errors import UserError

SUMS: Final = "SHA256SUMS"
SUMS_BYTES_MAX: Final = 1 << 20
BUNDLE_HINT: Final = "copy it again, or build it with `make bundle`"
_PART: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*", re.ASCII)
"""A part of a path: no `..`, no hidden file, nothing that a terminal or a shell interprets."""
_SUM: Final = re.compile(rf"([0-9a-f]{{64}})  ((?:{_PART.pattern}/)*{_PART.pattern})", re.ASCII)


class BundleFault(NamedTuple):
    """One file of a bundle that is not as it should be."""

    path: str
    what: str


class BundleReport(NamedTuple):
    """What was found in a bundle.

    `folder`: its one folder; `size`: of its files, in bytes; `digest`: the SHA-256 of the tar, in
    hexadecimal.
    """

    folder: str
    files: int
    size: int
    digest: str
    faults: tuple[BundleFault, ...]


def split_path(path: str) -> tuple[str, str] | None:
    """The bundle's folder, and the path in it; None for a path that a bundle cannot have.

    >>> split_path("fairlead-0.1.0-bundle/wheels/a-1-py3-none-any.whl")
    ('fairlead-0.1.0-bundle', 'wheels/a-1-py3-none-any.whl')
    >>> split_path("/etc/passwd"), split_path("a/../../b"), split_path("SHA256SUMS")
    (None, None, None)
    """
    parts = path.split("/")
    if len(parts) < 2 or not all(map(_PART.fullmatch, parts)):
        return None
    return parts[0], "/".join(parts[1:])


def parse_sums(text: bytes, name: str) -> dict[str, str]:
    """The SHA-256 of each path, as `sha256sum` writes them. `name`: the bundle's, for messages.

    Raises UserError for a line that is none of them, and for a path that is listed twice.

    >>> parse_sums(b"0" * 64 + b"  chart/a.tgz\\n", "x")["chart/a.tgz"][:3]
    '000'
    """
    found: dict[str, str] = {}
    lines = text.decode("ascii", "backslashreplace").removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        match = _SUM.fullmatch(line)
        if match is None or match[2] in found:
            what = f"bundle `{name}` is damaged: line {number} of its {SUMS} is {line[:120]!r}"
            raise UserError(what, BUNDLE_HINT)
        found[match[2]] = match[1]
    return found


def faults_of(listed: Mapping[str, str], found: Mapping[str, str]) -> list[BundleFault]:
    """Where the found files differ from the listed ones, both with their SHA-256, by path.

    >>> [*faults_of({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "9", "d": "4"})]
    [BundleFault(path='b', what='damaged: its SHA-256 is 9, and SHA256SUMS has 2'), \
BundleFault(path='c', what='missing'), BundleFault(path='d', what='additional: not in SHA256SUMS')]
    """
    faults = []
    for path in sorted(listed.keys() | found.keys()):
        if path not in found:
            faults.append(BundleFault(path, "missing"))
        elif path not in listed:
            faults.append(BundleFault(path, f"additional: not in {SUMS}"))
        elif found[path] != listed[path]:
            what = f"damaged: its SHA-256 is {found[path]}, and {SUMS} has {listed[path]}"
            faults.append(BundleFault(path, what))
    return faults
