"""The files of the Helm chart are what the tool writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kube.helm import chart_tool
from tests.waiting import HANG_SECONDS

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    """The chart that this process makes, which takes two seconds."""
    made: dict[str, str] = chart_tool().chart_files()
    return made


def test_the_chart_is_fresh(files: dict[str, str]) -> None:
    folder = ROOT / "deploy" / "chart" / "fairlead"
    found = {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }
    stale = {name for name in {*found, *files} if found.get(name) != files.get(name)}
    assert not stale, "stale: run `python tools/helm_chart.py`"


def test_the_package_is_the_same_bytes_from_any_process(
    files: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "package"
    subprocess.run(
        [sys.executable, ROOT / "tools" / "helm_chart.py", "--package", folder],
        env={**os.environ, "PYTHONHASHSEED": "1", "TZ": "Asia/Shanghai"},
        umask=0o077,
        check=True,
        capture_output=True,
        timeout=HANG_SECONDS,
    )
    (path,) = folder.iterdir()
    assert path.read_bytes() == chart_tool().package(files)
