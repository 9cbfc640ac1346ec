"""docs/how-to/scenarios.md is correct: its example loads and runs, and it names every key, card,
load and image that exists.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import fields

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.gpus.cards import CARD_MODELS
from fairlead_sim.scenario.file import known_scenarios, parse_scenario
from fairlead_sim.scenario.scenario import (
    ForeignProcess,
    Hang,
    JobKind,
    LoadName,
    NetworkService,
    NodePool,
    Outage,
    PriorityClass,
    Quota,
    Scenario,
    ScenarioService,
    StandingPod,
    Stream,
    Team,
    Xid,
)

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "scenarios.md").read_text(encoding="utf-8")
STRUCTS = (
    Scenario,
    NodePool,
    Xid,
    Hang,
    ForeignProcess,
    Outage,
    Team,
    Quota,
    PriorityClass,
    ScenarioService,
    StandingPod,
    NetworkService,
    Stream,
)


def test_the_example_loads_and_lives() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    scenario = parse_scenario(example, "docs/how-to/scenarios.md")
    world = sharing_world(scenario, 0, 1_767_600_000.0)
    world.warm_up()
    assert world.cluster.resource_version > 50


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_every_key_is_explained(struct: type) -> None:
    missing = [
        field.encode_name
        for field in fields(struct)
        if not re.search(rf"`(\[\[)?{field.encode_name}\b", PAGE)
    ]
    assert missing == []


@pytest.mark.parametrize(
    "name",
    [
        *CARD_MODELS,
        *get_args(LoadName),
        *get_args(JobKind),
        *(set(known_scenarios()) - {"default"}),
    ],
)
def test_every_value_is_named(name: str) -> None:
    assert f"`{name}`" in PAGE
