"""The command of every container in deploy/ is one that the program takes."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from fairlead.cli.frame.parser import VerbModule, make_parser
from fairlead.cli.frame.verbs import find_verb

DEPLOY = Path(__file__).parents[3] / "deploy"


def commands(value: Any) -> list[list[str]]:
    """Of all containers in a document, those that run `fairlead`."""
    if isinstance(value, list):
        return [found for each in value for found in commands(each)]
    if not isinstance(value, dict):
        return []
    words = [*(value.get("command") or ()), *(value.get("args") or ())]
    found = [words] if words and str(words[0]).endswith("fairlead") else []
    return found + [each for part in value.values() for each in commands(part)]


DEPLOYED = {
    f"{path.stem} {command[1]}": command[1:]
    for path in sorted(DEPLOY.rglob("*.yaml"))
    if "templates" not in path.parts
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    for command in commands(document)
}


@pytest.mark.parametrize("name", DEPLOYED)
def test_a_deployed_command_is_taken(name: str) -> None:
    words = DEPLOYED[name]
    verb = find_verb(words, "fairlead")
    assert verb is not None
    module = cast("VerbModule", importlib.import_module(f"fairlead.cli.{verb.module}"))
    make_parser(module, "fairlead").parse(words[len(verb.words) :])


def test_every_program_of_an_installation_is_tried() -> None:
    verbs = {words[0] for words in DEPLOYED.values()}
    assert {"console", "usage-recorder", "gpu-exporter", "device-plugin"} <= verbs, verbs
