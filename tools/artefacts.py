"""What a version consists of, each built into one folder: the image, wheel and sdist, the chart.

`make release` and `make bundle` use it; each step itself is in the tool that its own target runs.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from build_image import build_image
from distributions import TARGETS, build_distribution
from environment import PYTHON, make_environment
from progress import run_step
from toolchains import REPOSITORY

SUMS = "SHA256SUMS"

Builder = Callable[[Path], object]
"""Writes artefacts into the folder; raises StepFailed."""


def build_packages(folder: Path) -> None:
    """The wheel and the sdist."""
    for target in TARGETS:
        apart = folder / target
        built = build_distribution(target, apart)
        built.rename(folder / built.name)
        shutil.rmtree(apart)


def build_chart(folder: Path) -> None:
    """The Helm chart."""
    make_environment("dev")
    argv = [str(PYTHON), str(REPOSITORY / "tools" / "helm_chart.py"), "--package", str(folder)]
    run_step("packing the chart", argv, REPOSITORY / "build" / "logs" / "chart.log")


ARTEFACTS: tuple[Builder, ...] = (build_image, build_packages, build_chart)
"""The image's archive with its bills of materials; the wheel and the sdist; the chart."""


def sums_text(files: dict[str, Path]) -> str:
    """What `sha256sum --check` reads, by path."""
    return "".join(f"{sha256(files[path])}  {path}\n" for path in sorted(files))


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
