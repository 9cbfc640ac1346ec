"""The definition of the quota tree in `deploy/` equals the one in the code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import yaml

from fairlead.wire.quota.tree_definition import quota_tree_definition

ROOT = Path(__file__).parent.parent.parent
FILE = ROOT / "deploy" / "quota-crd.yaml"


def test_the_file_is_fresh() -> None:
    spec = importlib.util.spec_from_file_location(
        "deploy_quota_crd", ROOT / "tools" / "deploy_quota_crd.py"
    )
    assert spec and spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert FILE.read_text(encoding="utf-8") == tool.definition_text(), (
        "stale: run `python tools/deploy_quota_crd.py`"
    )


def test_readers_of_yaml_see_what_was_meant() -> None:
    assert yaml.safe_load(FILE.read_text(encoding="utf-8")) == quota_tree_definition()
