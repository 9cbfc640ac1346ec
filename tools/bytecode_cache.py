"""One folder of compiled Python modules for all programs of a test run.

A run starts hundreds of Python processes. uv installs packages without their compiled form, and
`PYTHONDONTWRITEBYTECODE` is set on many machines, so each process would compile what it imports
again: 2.5 s of CPU for each group. The folder is in `build/`, not beside the sources; only programs
that a test starts without the variables of the run compile to where Python does by default.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from environment import PYTHON
from toolchains import REPOSITORY

BYTECODE = REPOSITORY / "build" / "bytecode"
SHARED_PACKAGES = (
    *("pytest", "pytest_asyncio", "hypothesis", "sqlalchemy", "alembic", "aiohttp", "grpc"),
    *("uvicorn", "starlette.applications", "cryptography.x509", "yaml", "google.protobuf.message"),
)
"""What most groups import. Eight groups begin at once: each would compile all of it for itself."""


def keep_bytecode() -> None:
    """Let this process's children read compiled modules from the folder, and write them there."""
    os.environ["PYTHONPYCACHEPREFIX"] = str(BYTECODE)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def compile_shared() -> None:
    """Compile what most groups import: seconds for a new checkout, else a look at the files.

    A failure is no failure of the run: then each group compiles for itself, or reports it.
    """
    sources = [str(REPOSITORY / "src" / name) for name in ("fairlead", "fairlead_sim")]
    _run_all(
        [
            (str(PYTHON), "-m", "compileall", "-q", *sources),
            (str(PYTHON), "-c", f"import {', '.join(SHARED_PACKAGES)}"),
        ]
    )


def _run_all(programs: Sequence[Sequence[str]]) -> None:
    """Run them beside each other, and wait for all."""
    children = [
        subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for argv in programs
    ]
    for child in children:
        child.wait()
