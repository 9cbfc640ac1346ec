"""Scenarios: the default loads, and every fault names the file, the line and the key."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sim.small_world import EPOCH

from fairlead.errors import UserError
from fairlead.sharing_hooks import sharing_world
from fairlead.sim.resources import NODES
from fairlead.sim.scenario_file import known_scenarios, load_scenario, parse_scenario

GOOD = """\
title = "T"

[[node_pools]]
name = "gpu"
gpus = 2
gpu_model = "Tesla T4"

[[teams]]
name = "a"
namespaces = ["a"]

[[quota]]
path = "root"
max = { cpu = 4 }

[[quota]]
path = "root.a"
namespaces = ["a"]

[[streams]]
name = "train"
namespace = "a"
kind = "mpijob"
every = "5m"
runs = ["1m", "2m"]

[[xids]]
node = "gpu-1"
gpu = 1
code = 79
at = "1h"
"""


def refusal(text: str) -> str:
    with pytest.raises(UserError) as caught:
        parse_scenario(text, "mine.toml")
    assert caught.value.hint
    return caught.value.what


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), start=1) if part in line)


def test_a_good_scenario_loads() -> None:
    scenario = parse_scenario(GOOD, "mine.toml")
    assert scenario.streams[0].every.seconds == 300
    assert scenario.node_pools[0].gpu_model == "Tesla T4"


@pytest.mark.parametrize("name", sorted(set(known_scenarios()) - {"large"}))  # for that one see test_settled.py and bench/large_world.py
def test_every_scenario_that_comes_with_fairlead_loads_and_lives(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.title
    world = sharing_world(scenario, 1, EPOCH)
    world.warm_up()
    assert world.clock.now() == EPOCH + scenario.history.seconds
    assert world.cluster.list(NODES)


@pytest.mark.parametrize(
    ("old", "new", "key", "told"),
    [
        ("gpus = 2", 'gpus = "two"', "node_pools[0].gpus", "Expected `int`, got `str`"),
        ("gpus = 2", "gpus = 99", "node_pools[0].gpus", "99 is not between 0 and 16"),
        ("gpus = 2", "gpuss = 2", "node_pools[0].gpuss", "unknown field `gpuss`"),
        ('gpu_model = "Tesla T4"', 'gpu_model = "Voodoo 2"', "node_pools[0].gpu_model", "`Voodoo 2` is not a known card"),
        ('name = "gpu"', 'name = "GPU!"', "node_pools[0].name", "`GPU!` is not a Kubernetes name"),
        ('namespace = "a"', 'namespace = "b"', "streams[0].namespace", "no team has namespace `b`"),
        ('kind = "mpijob"', 'kind = "rayjob"', "streams[0].kind", "Invalid enum value 'rayjob'"),
        ('every = "5m"', 'every = "often"', "streams[0].every", "`often` is not a length of time"),
        ('every = "5m"', "every = 5", "streams[0].every", "`5` is not a length of time in quotes"),
        ('runs = ["1m", "2m"]', 'runs = ["3m", "2m"]', "streams[0].runs", "the shortest is longer than the longest"),
        ('runs = ["1m", "2m"]', 'runs = ["1m"]', "streams[0].runs", "Expected `array` of length 2, got 1"),
        ('every = "5m"', 'every = "5m"\nworkers = [1, 2001]', "streams[0].workers", "at least one number of workers, each 1 to 2000"),
        ("max = { cpu = 4 }", 'max = { cpu = "four" }', "quota[0].max", "`four` is not a Kubernetes quantity"),
        ('path = "root.a"', 'path = "roof.a"', "quota[1].path", "`roof.a` has no parent `roof`"),
        ('node = "gpu-1"', 'node = "gpu-2"', "xids[0].node", "there is no node `gpu-2`"),
        ("gpu = 1", "gpu = 2", "xids[0].gpu", "node `gpu-1` has 2 GPUs, there is no index 2"),
    ],
)
def test_a_fault_names_line_and_key(old: str, new: str, key: str, told: str) -> None:
    text = GOOD.replace(old, new, 1)
    what = refusal(text)
    assert f"`mine.toml` line {line_of(text, new.splitlines()[-1])}, key `{key}`:" in what
    assert told in what


@pytest.mark.parametrize("replicas", [-1, 2001])
def test_a_service_of_too_many_pods_is_told(replicas: int) -> None:
    text = f'{GOOD}\n[[services]]\nname = "s"\nnamespace = "a"\nimage = "x:1"\nreplicas = {replicas}\n'
    assert f"line {line_of(text, 'replicas =')}, key `services[0].replicas`: must be 0 to 2000" in refusal(text)


def test_a_missing_key_names_its_table() -> None:
    text = GOOD.replace('kind = "mpijob"\n', "")
    assert f"line {line_of(text, '[[streams]]')}, key `streams[0].kind`: Object missing required field `kind`" in refusal(text)


def test_a_missing_top_level_key_names_the_file() -> None:
    assert "`mine.toml` line 1, key `title`: Object missing required field `title`" in refusal(GOOD.replace('title = "T"\n', ""))


def test_broken_toml_names_the_line() -> None:
    assert "`mine.toml` is not valid TOML" in refusal("a = [1,\n[[b]")
    assert "line 2" in refusal("a = 1\nb = = 2\n")


def test_an_unknown_scenario_lists_the_known_ones() -> None:
    with pytest.raises(UserError, match="there is no scenario `defualt`") as caught:
        load_scenario("defualt")
    assert "default" in caught.value.hint


def test_a_missing_file_is_told_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        load_scenario(str(tmp_path / "none.toml"))


def test_a_file_that_is_not_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(b"title = \xff")
    with pytest.raises(UserError, match="is not UTF-8 text"):
        load_scenario(str(tmp_path / "bad.toml"))
