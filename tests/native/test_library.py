"""The guard as a file: which versions it needs, what it shows, and that two builds are alike.

Specification: docs/spec/gpu-sharing.md#resolution-by-the-guard.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.native.driver import Machine

from build_native import Built, build_guard
from guard_table import read_table

NEWEST = (2, 17)


def readelf(*words: str) -> str:
    return subprocess.run(
        ["readelf", "-W", *words, str(build_guard())], capture_output=True, text=True, check=True
    ).stdout


def test_it_needs_only_the_c_library_and_no_version_above_2_17() -> None:
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d")) == ["libc.so.6"]
    needed = re.findall(r"UND (\w+)@GLIBC_([\d.]+)", readelf("--dyn-syms"))
    assert needed
    assert max(tuple(map(int, version.split("."))) for _, version in needed) <= NEWEST


def test_it_exports_the_hooks_and_nothing_else() -> None:
    shown = set(re.findall(r"GLOBAL DEFAULT +\d+ (\w+)(@\S+)?$", readelf("--dyn-syms"), re.M))
    names = {name for name, _ in shown}
    assert names - {"dlsym", "dlvsym"} == {hook.export for hook in read_table().hooks}
    versions = {version for name, version in shown if name == "dlsym"}
    assert versions == {"@@GLIBC_2.2.5", "@GLIBC_2.34"}


def test_two_builds_are_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build_guard(Built()).read_bytes()
    monkeypatch.setattr("build_native.cache_home", lambda: tmp_path)
    assert build_guard(Built()).read_bytes() == first
    assert str(tmp_path).encode() not in first


def test_a_process_without_cuda_opens_no_file_of_it_and_prints_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.limits.write_text("malformed", encoding="utf-8")
    done = subprocess.run(
        ["ls", "/"], env=machine.environment(), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
