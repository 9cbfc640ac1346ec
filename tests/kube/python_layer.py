"""This machine's Python as a layer of an image. It takes the place of `python:3.11-slim`, with the
distributions that Fairlead's image installs.

The layer contains the interpreter, its library and its modules, the shared objects that any of them
is linked to, and busybox for a shell. Nothing is fetched.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from tests.kube.image_file import PROGRAMS, ROOT

MODULES = f"/usr/local/lib/python{sys.version_info.major}.{sys.version_info.minor}"
SITE = f"{MODULES}/site-packages"
_BUSYBOX = Path("/bin/busybox")
_LEFT_OUT = {
    "test",
    "idlelib",
    "tkinter",
    "lib2to3",
    "ensurepip",
    "turtledemo",
    "site-packages",
    "dist-packages",
    "__pycache__",
}
_LOADED_LATE = ("libgcc_s.so.1",)
"""Libraries that the C library loads by name when a thread ends."""


def write_python(layer: tarfile.TarFile) -> None:
    for link in ("bin", "lib", "lib64"):
        add_link(layer, link, f"usr/{link}")
    files = {**dict(_interpreter()), **dict(_distributions())}
    for target, source in {**dict(_libraries([*files.values()])), **files}.items():
        add_file(layer, target, source)
    add_file(layer, "/usr/bin/busybox", _BUSYBOX)
    for name in subprocess.run(
        [_BUSYBOX, "--list"], capture_output=True, text=True, timeout=30, check=True
    ).stdout.split():
        if name != "busybox":
            add_link(layer, f"usr/bin/{name}", "busybox")
    for name in ("python", "python3"):
        add_link(layer, f"{PROGRAMS}/{name}", Path(sys.executable).resolve().name)


def add_file(layer: tarfile.TarFile, target: str, source: Path) -> None:
    """Add a file with its modification time, to the second: Python uses a compiled file only if its
    source has the recorded time.
    """
    entry = layer.gettarinfo(str(source.resolve()), target.lstrip("/"))
    entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = int(entry.mtime), 0, 0, "", ""
    # also a file that has other names here (hard links)
    entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", source.stat().st_size
    with source.open("rb") as content:
        layer.addfile(entry, content)


def _interpreter() -> Iterator[tuple[str, Path]]:
    program, modules = Path(sys.executable).resolve(), Path(sysconfig.get_path("stdlib"))
    yield f"{PROGRAMS}/{program.name}", program
    for each in modules.iterdir():
        if each.name not in _LEFT_OUT and not each.name.startswith("config-"):
            for file in [each] if each.is_file() else each.rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts:
                    yield from _with_compiled(f"{MODULES}/{file.relative_to(modules)}", file)


def _distributions() -> Iterator[tuple[str, Path]]:
    """The distributions that Fairlead's distribution requires, and those that they require."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted, found = [*project["dependencies"]], set[str]()
    while wanted:
        requirement = Requirement(wanted.pop())
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name in found or (
            requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})
        ):
            continue
        found.add(name)
        distribution = importlib.metadata.distribution(name)
        wanted += distribution.requires or []
        for file in distribution.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                yield from _with_compiled(f"{SITE}/{file}", Path(str(file.locate())))


def _with_compiled(target: str, source: Path) -> Iterator[tuple[str, Path]]:
    if not source.is_file():
        return
    yield target, source
    if source.suffix == ".py":
        compiled = Path(importlib.util.cache_from_source(str(source), optimization=""))
        if compiled.is_file():
            yield f"{target.rpartition('/')[0]}/__pycache__/{compiled.name}", compiled


def _libraries(files: list[Path]) -> Iterator[tuple[str, Path]]:
    """The libraries that these files are linked to, in the loader's default places; a
    distribution's own libraries are among `files`.
    """
    linked = [
        file
        for file in files
        if file.suffix == ".so" or ".so." in file.name or file == Path(sys.executable).resolve()
    ]
    told = subprocess.run(
        ["ldd", *map(str, linked)], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    (loader,) = set(re.findall(r"^\s+(/\S+/ld-linux\S+) \(", told, re.MULTILINE))
    yield f"/usr{loader}", Path(loader)
    own = {file.resolve() for file in files}
    found = {
        name: Path(path)
        for name, path in re.findall(
            (
                r"^\s+(\S+) => "
                r"(/\S+) \("
            ),
            told,
            re.MULTILINE,
        )
    }
    folder = found["libc.so.6"].resolve().parent
    found |= {name: folder / name for name in _LOADED_LATE if (folder / name).exists()}
    for name, path in found.items():
        if path.resolve() not in own:
            yield f"{folder}/{name}", path


def add_link(layer: tarfile.TarFile, name: str, target: str) -> None:
    entry = tarfile.TarInfo(name.lstrip("/"))
    entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, target, 0o777
    layer.addfile(entry)
