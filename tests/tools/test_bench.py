"""`python -m bench`: each listed measurement can be started, and each existing one is listed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from bench.__main__ import MEASUREMENTS, MODULES
from tests.programs import run_program

REPOSITORY = Path(__file__).resolve().parents[2]


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "bench", *words]
    return run_program(argv, cwd=REPOSITORY)


def test_every_measurement_is_listed_under_its_module() -> None:
    found = {}
    for path in (REPOSITORY / "bench").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        names = {name.removeprefix("measure_") for name in functions if name.startswith("measure_")}
        found |= {path.stem: names} if names else {}
    assert found == {module: set(names) for module, names in MEASUREMENTS.items()}
    lines = bench("LIST").stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == list(MODULES)


def test_every_measurement_prints_its_help() -> None:
    """In one process: each measurement imports what it needs, and parses its command line."""
    lines = [
        "import contextlib, io, sys",
        "from bench.__main__ import MODULES, main",
        "for name in MODULES:",
        (
            "    with contextlib.redirect_stdout(io.StringIO()) as printed, "
            "contextlib.suppress(SystemExit):"
        ),
        "        main([name, '--help'])",
        "    assert f'usage: python -m bench {name} ' in printed.getvalue(), name",
    ]
    ended = run_program([sys.executable, "-c", "\n".join(lines)], cwd=REPOSITORY)
    assert ended.returncode == 0, ended.stderr


def test_a_name_that_is_none_gets_the_nearest() -> None:
    ended = bench("quota_plans")
    assert ended.returncode == 2
    assert (
        "there is no measurement `quota_plans`"
    ) in ended.stderr and "`quota_plan`" in ended.stderr
