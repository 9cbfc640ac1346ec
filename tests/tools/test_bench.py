"""Every measurement can still be begun: what it imports is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_every_measurement_imports_what_there_is() -> None:
    names = sorted(path.stem for path in (REPOSITORY / "bench").glob("*.py") if path.stem != "__init__")
    assert len(names) > 15
    lines = ["import sys", f"sys.path[:0] = ['bench', {str(REPOSITORY)!r}]", *(f"import bench.{name}" for name in names)]
    ended = subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
