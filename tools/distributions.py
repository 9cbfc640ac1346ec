"""Fairlead's wheel and sdist, with the console's pages and the memory guard, the same bytes from
the same sources and compilers.

hatchling of requirements/hatchling.txt builds them; it sorts the files and sets their times and
modes itself.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from console_pages import build_console
from locks import only_one
from progress import StepFailed, cache_home, run_step, say
from shipped_guard import place_guards
from toolchains import LOCKS_DIR, REPOSITORY, pinned_version, pip_command

TARGETS = ("wheel", "sdist")
SOURCE_TIME = "315532800"
"""1980-01-01T00:00:00Z, unless SOURCE_DATE_EPOCH names another time for the files."""


def build_distribution(target: str, folder: Path, root: Path = REPOSITORY) -> Path:
    """Build the "wheel" or the "sdist" of the checkout `root` into the empty `folder`.

    Raises StepFailed. The pages and the guard of this checkout are built first; those of another
    are its own.
    """
    if root == REPOSITORY:
        build_console()
        place_guards()
    packages = _hatchling()
    environment = dict(
        os.environ,
        PYTHONPATH=str(packages),
        PYTHONDONTWRITEBYTECODE="1",
        SOURCE_DATE_EPOCH=os.environ.get("SOURCE_DATE_EPOCH", SOURCE_TIME),
    )
    argv = [sys.executable, "-m", "hatchling", "build", "--target", target]
    argv += ["--directory", str(folder)]
    log = cache_home() / "logs" / f"build-{target}.log"
    run_step(f"building the {target}", argv, log, cwd=root, env=environment)
    (built,) = folder.glob("fairlead-*")
    return built


def _hatchling() -> Path:
    """The folder of hatchling and what it needs."""
    version = ".".join(map(str, pinned_version("hatchling")))
    folder = cache_home() / "toolchains" / f"hatchling-{version}"
    with only_one(folder.parent / f"{folder.name}.lock", "hatchling"):
        if not folder.exists():
            started = folder.with_name(f"{folder.name}.new")
            shutil.rmtree(started, ignore_errors=True)
            argv = [*pip_command(), "install", "--quiet", "--require-hashes"]
            argv += ["--target", str(started), "-r", str(LOCKS_DIR / "hatchling.txt")]
            run_step("installing hatchling", argv, cache_home() / "logs" / "hatchling.log")
            started.rename(folder)
    return folder


def main() -> int:
    """Both, into build/dist."""
    folder = REPOSITORY / "build" / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        for target in TARGETS:
            built = build_distribution(target, folder / target)
            say(f"wrote {built.relative_to(REPOSITORY)}")
    except StepFailed as failed:
        say(f"error: {failed.what}")
        if failed.hint:
            say(f"hint: {failed.hint}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
