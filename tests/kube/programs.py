"""Finds the built Kubernetes programs and the modules whose YAML the tests read, through `tools/`,
which pins them.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

_TOOLS = Path(__file__).resolve().parents[2] / "tools"


def program(name: str, kubernetes: str = "") -> Path:
    """The path of the built program; FileNotFoundError with the command that builds it.

    `kubernetes`: another minor version, for a program of the control plane; "" = that of all tests.
    """
    tool = _tool("kube_programs")
    other = tool.OTHER_KUBERNETES[kubernetes] if kubernetes else None
    is_of_other = other is not None and name in other.packages
    path: Path = tool.family_path(other, name) if is_of_other else tool.program_path(name)
    if not path.exists():
        command = " ".join(
            ("python3 tools/build_kube.py", *tool.build_flags([other] if other else []))
        )
        raise FileNotFoundError(f"{path} is not built; `{command}` builds it")
    return path


def other_kubernetes() -> dict[str, str]:
    """The pinned versions of the other control planes that can be built, by minor version."""
    return {
        minor: family.version for minor, family in _tool("kube_programs").OTHER_KUBERNETES.items()
    }


def missing_programs() -> list[str]:
    """The programs of the test cluster that are not built yet."""
    pinned = _tool("kube_programs")
    return [name for name in pinned.FAMILY_OF if not pinned.program_path(name).exists()]


@cache
def module_folder(family: str) -> Path:
    """The folder of a pinned module (`KWOK`, `MPI_OPERATOR`, …) in Go's module cache."""
    folder: Path = _tool("build_kube").module_dir(getattr(_tool("kube_programs"), family))
    return folder


def _tool(name: str) -> ModuleType:
    # The tools run as scripts beside each other, so they are no package.
    if str(_TOOLS) not in sys.path:
        sys.path.append(str(_TOOLS))
    return importlib.import_module(name)
