"""Helm 3 and Helm 4: a home of their own, and the chart packed as `make chart` packs it."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from tests.kube.programs import program

from fairlead import __version__

HELMS = ("helm3", "helm4")
_TOOLS = Path(__file__).resolve().parents[2] / "tools"


class Helm:
    """One of the two programs. `home`: a folder for what it keeps. `settings`: its environment."""

    def __init__(
        self,
        name: str,
        home: Path,
        kubeconfig: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._program = program(name)
        self._home = home
        self._kubeconfig = kubeconfig
        self._settings = settings or {}

    def answer(self, *words: str, seconds: float = 300.0) -> subprocess.CompletedProcess[str]:
        cluster = [f"--kubeconfig={self._kubeconfig}"] if self._kubeconfig else []
        return subprocess.run(
            [self._program, *words, *cluster],
            env={"PATH": os.environ["PATH"], "HOME": str(self._home), **self._settings},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def run(self, *words: str) -> str:
        """What it prints on stdout; AssertionError with its messages if it fails."""
        answer = self.answer(*words)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    def refusal(self, *words: str) -> str:
        """Its messages; AssertionError if it does not fail."""
        answer = self.answer(*words)
        assert answer.returncode != 0, answer.stdout
        return answer.stderr


def packed_chart(folder: Path) -> Path:
    """The chart as one file in the folder."""
    path = folder / f"fairlead-{__version__}.tgz"
    path.write_bytes(_package())
    return path


@functools.cache
def _package() -> bytes:
    """Two seconds of CPU, for the same bytes each time."""
    tool = chart_tool()
    packed: bytes = tool.package(tool.chart_files())
    return packed


def chart_tool() -> ModuleType:
    """`tools/helm_chart.py`. The tools run as scripts beside each other, so they are no package."""
    if str(_TOOLS) not in sys.path:
        sys.path.append(str(_TOOLS))
    return importlib.import_module("helm_chart")
