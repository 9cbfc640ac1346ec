"""The wheels of requirements/run.txt for one architecture, and the layer of the image that has them
unpacked as pip would install them.

pip fetches them and checks the hashes of the lock file; nothing is built, nothing runs.
"""

from __future__ import annotations

import configparser
import hashlib
import io
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from image.tree import File, Folder, Link
from locks import only_one
from progress import StepFailed, cache_home, run_step, say
from toolchains import LOCKS_DIR, pip_command

IMAGE_PYTHON = "3.11"
SITE = "usr/local/lib/python3.11/dist-packages"
PROGRAMS = "usr/local/bin"
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_GLIBC_MINORS = range(36, 16, -1)
"""Debian 12 has glibc 2.36; wheels for an older one run there."""
_NOT_LOADED = (".c", ".h", ".pxd", ".pyi", ".pyx")
_INSTALLER_FILES = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")


def fetched_wheels(architecture: str, python: str = IMAGE_PYTHON) -> list[Path]:
    """The wheels of requirements/run.txt for a version of CPython, by name; from the cache or by
    pip.
    """
    lock = LOCKS_DIR / "run.txt"
    key = hashlib.sha256(f"{architecture} {_GLIBC_MINORS}".encode() + lock.read_bytes()).hexdigest()
    folder = cache_home() / "image" / "wheels" / f"{architecture}-{python}-{key[:16]}"
    with only_one(folder.parent / "lock", "wheels of the image"):
        if not folder.exists():
            say(f"fetching the wheels for {architecture}, Python {python}")
            with tempfile.TemporaryDirectory(dir=folder.parent) as name:
                log = cache_home() / "logs" / f"wheels-{architecture}-{python}.log"
                run_step("fetching wheels", _download(architecture, python, lock, Path(name)), log)
                shutil.copytree(name, folder)
    return sorted(folder.glob("*.whl"))


def _download(architecture: str, python: str, lock: Path, folder: Path) -> list[str]:
    machine = MACHINES[architecture]
    platforms = [
        *(f"manylinux_2_{minor}_{machine}" for minor in _GLIBC_MINORS),
        f"manylinux2014_{machine}",
    ]
    return [
        *pip_command(),
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        *(word for platform in platforms for word in ("--platform", platform)),
        *("--python-version", python, "--implementation", "cp"),
        *("--abi", f"cp{python.replace('.', '')}", "--abi", "abi3", "--abi", "none"),
        *("--requirement", str(lock), "--dest", str(folder)),
    ]


def wheel_tree(wheel: bytes, name: str) -> dict[str, File | Link | Folder]:
    """The files of a wheel and its console scripts.

    What only compilers, type checkers and pip read is left out, as are manual pages.
    """
    tree: dict[str, File | Link | Folder] = {}
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        for path in sorted(archive.namelist()):
            target = _target(path, name)
            if target and not path.endswith("/"):
                tree[target] = File(archive.read(path), is_program=False)
            if path.endswith(".dist-info/entry_points.txt"):
                tree |= dict(_console_scripts(archive.read(path).decode()))
    return tree


def _target(path: str, wheel: str) -> str:
    """Where the installed file is; empty where it is left out."""
    first, _, rest = path.partition("/")
    if first.endswith(".data"):
        kind, _, rest = rest.partition("/")
        if kind in ("purelib", "platlib"):
            return f"{SITE}/{rest}"
        if kind in ("data", "headers"):
            return ""
        raise StepFailed(f"{wheel} installs {path}: tools/image/wheels.py does not know `{kind}`")
    if path.endswith(_NOT_LOADED):
        return ""
    if first.endswith(".dist-info") and rest in _INSTALLER_FILES:
        return ""
    return f"{SITE}/{path}"


def _console_scripts(text: str) -> Iterator[tuple[str, File]]:
    """As pip writes them."""
    points = configparser.ConfigParser(delimiters=("=",))
    points.optionxform = str  # type: ignore[assignment, method-assign]
    points.read_string(text)
    for script, place in points["console_scripts"].items() if "console_scripts" in points else ():
        module, _, function = re.sub(r"\s*\[.*", "", place).partition(":")
        program = (
            f"#!/usr/bin/python3.11\nimport sys\nfrom {module} import {function}\n"
            f'if __name__ == "__main__":\n    sys.exit({function}())\n'
        )
        yield f"{PROGRAMS}/{script}", File(program.encode(), is_program=True)
