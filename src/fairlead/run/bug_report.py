"""The report that a person attaches when Fairlead itself broke: version, platform, command line, traceback.

Values of flags that could carry a secret are not written; there are few such flags, because secrets live in
files.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairlead import __version__
from fairlead.edge.files.own_files import state_home


def write_bug_report(program: str, argv: Sequence[str], error: BaseException, env: Mapping[str, str]) -> Path | None:
    """The report's path; None when no directory can be written."""
    import tempfile

    text = bug_report(program, argv, error)
    for directory in (state_home(env) / "reports", Path(tempfile.gettempdir())):
        path = directory / f"bug-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with path.open("x") as file:  # whatever stands there is not ours, and a link in /tmp may lead anywhere
                file.write(text)
        except OSError:
            continue
        return path
    return None


def bug_report(program: str, argv: Sequence[str], error: BaseException) -> str:
    import traceback

    return (
        f"fairlead {__version__}, Python {sys.version.split()[0]}, {' '.join(os.uname()[i] for i in (0, 2, 4))}\n"
        f"command: {program} {' '.join(_without_secrets(argv))}\n\n"
        f"{''.join(traceback.format_exception(error))}"
    )


def _without_secrets(argv: Sequence[str]) -> list[str]:
    """`--…token=x` and `--…password x` lose their values."""
    kept: list[str] = []
    hide_next = False
    for word in argv:
        name, has_value, _ = word.partition("=")
        is_secret = name.startswith("-") and any(mark in name for mark in ("token", "password", "secret"))
        kept.append("***" if hide_next else f"{name}=***" if is_secret and has_value else word)
        hide_next = is_secret and not has_value
    return kept
