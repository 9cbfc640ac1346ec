"""Bytecode for the modules of a layer, the same bytes on every machine.

The image's own interpreter compiles, started by its own loader, so the builder's Python may be
another version. The files are never compared with their sources (PEP 552, `unchecked-hash`): a
container's file system is read-only.
"""

from __future__ import annotations

import platform
import re
import shutil
import tempfile
from pathlib import Path, PurePosixPath

from image.debian_root import PYTHON
from image.tree import File, Tree, write_tree
from locks import only_one
from progress import StepFailed, cache_home, run_step

HOST_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_COMPILE = """
import pathlib, py_compile, sys
root = pathlib.Path(sys.argv[1])
for path in sorted(root.rglob("*.py")):
    shown = "/" + str(path.relative_to(root))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(path), dfile=shown, doraise=True, invalidation_mode=mode)
"""
_SUFFIX = ".cpython-311.pyc"
_ENVIRONMENT = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
"""Nothing else of the builder's: the order of a frozen set is part of bytecode."""


def host_architecture() -> str:
    """Debian's name of this machine's architecture, whose interpreter can run here."""
    machine = platform.machine()
    if machine not in HOST_ARCHITECTURES:
        raise StepFailed(
            f"the image is built on x86_64 or aarch64, and this machine is {machine}",
            "its Python compiles the modules, for both architectures",
        )
    return HOST_ARCHITECTURES[machine]


def compiled(tree: Tree, interpreter: Path) -> dict[str, File]:
    """A file of `__pycache__` for each module of the tree.

    `interpreter`: an unpacked Debian layer of this machine's architecture (`unpacked_interpreter`).
    """
    sources = {
        path: entry
        for path, entry in tree.items()
        if path.endswith(".py") and isinstance(entry, File)
    }
    with tempfile.TemporaryDirectory(prefix="fairlead-bytecode-") as name:
        root = Path(name)
        write_tree(sources, root)
        argv = [*_python(interpreter), "-s", "-S", "-B", "-c", _COMPILE, str(root)]
        log = cache_home() / "logs" / "image-bytecode.log"
        run_step("compiling modules", argv, log, env=_ENVIRONMENT)
        return {path: File((root / path).read_bytes()) for path in map(_cached, sources)}


def _cached(path: str) -> str:
    place = PurePosixPath(path)
    return str(place.parent / "__pycache__" / f"{place.stem}{_SUFFIX}")


def unpacked_interpreter(tree: Tree, key: str) -> Path:
    """The Debian layer as a folder of the cache, so that its Python runs on this machine."""
    folder = cache_home() / "image" / "interpreters" / key[:16]
    with only_one(folder.parent / "lock", "the image's Python"):
        if not folder.exists():
            started = folder.with_suffix(".new")
            shutil.rmtree(started, ignore_errors=True)
            parts = {path: tree[path] for path in tree if re.match(r"usr/(bin|lib)/", path)}
            write_tree(parts, started)
            started.rename(folder)
    return folder


def _python(interpreter: Path) -> list[str]:
    (library,) = interpreter.glob("usr/lib/*-linux-gnu/libc.so.6")
    (loader,) = library.parent.glob("ld-linux-*.so.*")
    return [str(loader), "--library-path", str(library.parent), str(interpreter / PYTHON)]
