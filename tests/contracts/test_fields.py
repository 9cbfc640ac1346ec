"""Contract: the tables of fields (`wire/kube/fields_table`) and of how they merge
(`fairlead_sim/ownership/merge_table`) agree with the Go types of the pinned Kubernetes.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("tool", "table"),
    [
        ("kube_fields", "src/fairlead/wire/kube/fields_table.py"),
        ("kube_merge_table", "src/fairlead_sim/ownership/merge_table.py"),
    ],
)
def test_the_fields_are_those_of_the_go_types(
    monkeypatch: pytest.MonkeyPatch, tool: str, table: str
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    wanted = importlib.import_module(tool).render()
    assert (ROOT / table).read_text(encoding="utf-8") == wanted, f"run tools/{tool}.py"
