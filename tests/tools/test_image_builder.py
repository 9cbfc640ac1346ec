"""The builder of the image: one tar from a tree, and what it prints of bad input."""

from __future__ import annotations

import ast
import importlib
import io
import json
import sys
import tarfile
import types
import zipfile
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))


def module(name: str) -> types.ModuleType:
    return importlib.import_module(name)


def failure() -> type[Exception]:
    found: type[Exception] = module("progress").StepFailed
    return found


def test_a_tree_gives_one_tar_whatever_its_order() -> None:
    tree = module("image.tree")
    files = {"b/c": tree.File(b"1"), "a": tree.Link("b/c"), "tmp": tree.Folder(0o1777)}
    tar = tree.tar_bytes(files)
    assert tar == tree.tar_bytes(dict(reversed(files.items())))
    with tarfile.open(fileobj=io.BytesIO(tar)) as found:
        rows = [(row.name, row.mode, row.mtime, row.uid) for row in found]
    times = 315532800, 0
    assert rows == [
        ("a", 0o777, *times),
        ("b", 0o755, *times),
        ("b/c", 0o644, *times),
        ("tmp", 0o1777, *times),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04", "x.deb is no Debian package: it begins with b'PK\\x03\\x04'"),
        (b"!<arch>\n", "x.deb has no member data.tar"),
    ],
)
def test_a_file_that_is_no_package_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(failure()) as caught:
        [*module("image.debian_root").unpacked(content, "x.deb")]
    assert caught.value.what == message


def test_a_package_of_another_hash_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt, lock = module("image.apt"), module("image.debian_lock")
    monkeypatch.setattr(apt, "DOWNLOADS", tmp_path)
    package = lock.LockedPackage("amd64", "x", "1", "x_1_amd64.deb", 3, "0" * 64)
    (tmp_path / package.file).write_bytes(b"abc")
    with pytest.raises(failure()) as caught:
        apt.keep(package, tmp_path)
    assert caught.value.what == (
        "x_1_amd64.deb has the SHA-256 "
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad; the lock file "
        "requires 0000000000000000000000000000000000000000000000000000000000000000"
    )
    assert not [*tmp_path.glob("*0.deb")]


def test_a_wheel_that_installs_what_the_builder_does_not_know_is_refused() -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as wheel:
        wheel.writestr("x-1.data/scripts/x", "")
    with pytest.raises(failure()) as caught:
        module("image.wheels").wheel_tree(whole.getvalue(), "x.whl")
    assert (
        caught.value.what
        == "x.whl installs x-1.data/scripts/x: tools/image/wheels.py does not know `scripts`"
    )


def test_a_time_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    with pytest.raises(failure(), match="SOURCE_DATE_EPOCH is `today`"):
        module("build_image").source_time()


def test_a_machine_of_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bytecode = module("image.bytecode")
    monkeypatch.setattr(bytecode.platform, "machine", lambda: "riscv64")
    with pytest.raises(failure()) as caught:
        bytecode.host_architecture()
    assert (
        caught.value.what == "the image is built on x86_64 or aarch64, and this machine is riscv64"
    )


def test_the_lock_file_is_what_the_tool_writes_and_is_complete() -> None:
    lock = module("image.debian_lock")
    packages = [each for name in lock.ARCHITECTURES for each in lock.read_lock(name)]
    assert lock.LOCK.read_text(encoding="utf-8") == lock.lock_text(packages)
    for name in lock.ARCHITECTURES:
        assert {each.name for each in lock.read_lock(name)} == set(lock.PACKAGES)
    assert json.loads(lock.LOCK.read_text(encoding="utf-8"))["suite"] == lock.SUITE


def test_modules_of_the_builder_need_the_standard_library_alone() -> None:
    """They run before any environment exists."""
    known = {*sys.stdlib_module_names, *(path.stem for path in TOOLS.iterdir())}
    for path in sorted((TOOLS / "image").glob("*.py")):
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        words = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        words |= {
            each.name for node in nodes if isinstance(node, ast.Import) for each in node.names
        }
        assert {word.partition(".")[0] for word in words} <= known, path.name
