"""Contract: the table of fields (`wire/kube/fields_table`) agrees with the Go types of the pinned
Kubernetes.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_fields_are_those_of_the_go_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    wanted = importlib.import_module("kube_fields").render()
    assert (ROOT / "src/fairlead/wire/kube/fields_table.py").read_text(
        encoding="utf-8"
    ) == wanted, "run tools/kube_fields.py"
