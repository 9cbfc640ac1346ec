"""The files of the Helm chart are what the tool writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.kube.helm import chart_tool

ROOT = Path(__file__).parent.parent.parent


def test_the_chart_is_fresh() -> None:
    folder = ROOT / "deploy" / "chart" / "fairlead"
    found = {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }
    wanted = chart_tool().chart_files()
    stale = {name for name in {*found, *wanted} if found.get(name) != wanted.get(name)}
    assert not stale, "stale: run `python tools/helm_chart.py`"


def test_the_package_is_the_same_bytes_from_any_process(tmp_path: Path) -> None:
    packages = []
    for number, zone in enumerate(("UTC", "Asia/Shanghai")):
        folder = tmp_path / str(number)
        subprocess.run(
            [sys.executable, ROOT / "tools" / "helm_chart.py", "--package", folder],
            env={**os.environ, "PYTHONHASHSEED": str(number), "TZ": zone},
            umask=number * 0o077,
            check=True,
            capture_output=True,
            timeout=120,
        )
        packages += [path.read_bytes() for path in folder.iterdir()]
    assert len(packages) == 2 and packages[0] == packages[1]
