"""The wheel and the sdist, of this checkout and of a copy of it elsewhere."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.image.archive import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from tests.programs import run_program

from console_pages import PAGES, build_console
from distributions import build_distribution


def built_here(target: str, folder: Path) -> Path:
    return build_distribution(target, folder)


def built_in_a_copy(target: str, folder: Path) -> Path:
    """What git has and the pages, in a folder of another name, for another umask.

    `PKG-INFO` makes the copy an unpacked sdist: its pages are there, and Node is not asked for.
    """
    build_console()
    copy = folder / "copy of it"
    files = run_program(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
    ).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    shutil.copytree(PAGES, copy / PAGES.relative_to(ROOT))
    return build_distribution(target, folder / "there", copy)
