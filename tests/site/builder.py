"""The tool behind `make site`, for tests. The tools import each other as scripts do."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import build_site  # noqa: E402
from progress import StepFailed  # noqa: E402

__all__ = ["ROOT", "StepFailed", "build_site"]
