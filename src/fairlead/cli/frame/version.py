"""`arena version` prints which build this is. Lines and their order are arena's.

See docs/spec/arena-cli.md#version.
"""

from __future__ import annotations

import argparse
import os
import sys

import fairlead
from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.frame.flags import BooleanFlag

NAME = "version"
HELP = "Print the version of this program and how it was built."

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--short", action=BooleanFlag, help="only the version")
    parser.add_argument(
        "--verbose", "-v", action=BooleanFlag, help="also the versions of the libraries in use"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    lines = [f"{context.program}: v{fairlead.__version__}"]
    if not args.short:
        lines += build_lines(context.machine)
    if args.verbose:
        lines += library_lines()
    context.stdout.write("\n".join(lines) + "\n")
    return 0


def build_lines(machine: Machine) -> list[str]:
    """Indented facts.

    An image or a wheel may carry `fairlead/_build.py` with the constants; a checkout is asked for
    its commit.
    """
    build = _build_constants()
    lines = [
        f"BuildDate: {build.get('BUILD_DATE', 'unknown')}",
        f"GitCommit: {build.get('GIT_COMMIT') or machine.commit() or 'unknown'}",
        f"GitTreeState: {build.get('GIT_TREE_STATE', 'unknown')}",
    ]
    if build.get("GIT_TAG"):
        lines.append(f"GitTag: {build['GIT_TAG']}")
    processor = os.uname().machine
    lines += [
        f"PythonVersion: {sys.version.split()[0]}",
        f"Compiler: {sys.version.partition('[')[2].rstrip(']') or sys.implementation.name}",
        f"Platform: {sys.platform}/{_MACHINES.get(processor, processor)}",
    ]
    return [f"  {line}" for line in lines]


def library_lines() -> list[str]:
    from importlib.metadata import PackageNotFoundError, version

    lines = []
    for name in ("aiohttp", "msgspec", "PyYAML", "starlette", "uvicorn"):
        try:
            lines.append(f"  {name}: {version(name)}")
        except PackageNotFoundError:
            lines.append(f"  {name}: not installed")
    return lines


def _build_constants() -> dict[str, str]:
    try:
        from fairlead import _build  # type: ignore[attr-defined]
    except ImportError:
        return {}
    return {name: str(value) for name, value in vars(_build).items() if name.isupper()}
