"""The files of `deploy/` are what `wire/installation` describes, and each of them is described."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from fairlead.model.installation import Installation
from fairlead.wire.installation.components import COMPONENTS

FILES = COMPONENTS
ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"


def _tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec and spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


TOOL = _tool("deploy_objects")


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    made: dict[str, str] = TOOL.texts()
    return made


def test_every_file_is_described() -> None:
    assert {path.stem for path in DEPLOY.glob("*.yaml")} == set(FILES)
    assert set(TOOL.HEADS) == set(FILES) - {TOOL.ELSEWHERE}


@pytest.mark.parametrize("name", sorted(TOOL.HEADS))
def test_the_file_is_fresh(name: str, texts: dict[str, str]) -> None:
    text = (DEPLOY / f"{name}.yaml").read_text(encoding="utf-8")
    assert text == texts[name], "stale: run `python tools/deploy_objects.py`"


@pytest.mark.parametrize("name", sorted(FILES))
def test_readers_of_yaml_see_what_was_meant(name: str) -> None:
    text = (DEPLOY / f"{name}.yaml").read_text(encoding="utf-8")
    assert list(yaml.safe_load_all(text)) == FILES[name](Installation())


def test_the_page_of_values_is_fresh() -> None:
    tool = _tool("docs_installation_values")
    assert tool.FILE.read_text(encoding="utf-8") == tool.page_text(), (
        "stale: run `python tools/docs_installation_values.py`"
    )
