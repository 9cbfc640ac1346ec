"""`fairlead quota plan --replay` over a real store that holds two hours of a simulated cluster."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from tests.cli.command import Printed, run_command
from tests.usage.world_states import WorldStates

from fairlead.edge.store.address import store_address
from fairlead.edge.store.opened import open_store
from fairlead.errors import UserError
from fairlead.model.snapshot import build_snapshot
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import ELASTIC_QUOTA_TREES
from fairlead_sim.scenario.file import parse_scenario

SCENARIO = Path(__file__).parents[2] / "usage" / "replayed_week.toml"
EPOCH = 1_790_000_000.0


async def _write(states: WorldStates, url: str, start: float, end: float) -> None:
    store = await open_store(store_address(url))
    try:
        await states.write(store.ledger, round(start * 1000), round(end * 1000))
    finally:
        await store.close()


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, float]:
    """URL of the store, file of the tree, and the end."""
    folder = tmp_path_factory.mktemp("replay")
    world = sharing_world(parse_scenario(SCENARIO.read_text(), SCENARIO.name), 6, EPOCH)
    world.warm_up()
    start, states = world.clock.now(), WorldStates(world)
    world.run_until(start + 7200)
    url = f"sqlite:///{folder}/store.sqlite"
    asyncio.run(_write(states, url, start, world.clock.now()))
    tree = next(iter(world.cluster.scan(ELASTIC_QUOTA_TREES)))
    file = folder / "tree.yaml"
    file.write_text(yaml.safe_dump(json.loads(json.dumps(tree))))
    return url, str(file), world.clock.now()


def plan(line: str, now: float = 0.0) -> Printed:
    return run_command(f"quota plan {line}", build_snapshot(taken_at=0.0), "fairlead", now=now)


def test_the_same_tree_changes_nothing(past: tuple[str, str, float]) -> None:
    url, tree, now = past
    printed = plan(f"--tree {tree} --replay 2h --store {url}", now)
    assert printed.status == 0
    lines = printed.out.splitlines()
    assert lines[0].endswith(" Nothing was written.")
    assert lines[2].startswith("LEAF           WHAT      PODS  WAITED(h)  MEAN")
    in_force = [line.split("in force")[1] for line in lines if "  in force  " in line]
    asked = [line.split("asked")[1] for line in lines if "  asked  " in line]
    assert len(asked) == 3, "two leaves and the sum"
    assert [line.split() for line in in_force] == [line.split() for line in asked]
    assert "are out of order." in printed.out
    assert "reading the ledger: 0 %" in printed.err
    assert "replaying what is asked for: 100 %" in printed.err


def test_json_has_all_of_it(past: tuple[str, str, float]) -> None:
    url, _, now = past
    model = "NVIDIA-A100-SXM4-80GB"
    printed = plan(f"--replay 2h --nodes {model}=+1 --store {url} -o json", now)
    found = json.loads(printed.out)
    assert found["nodes"] == [f"{model}=+1"]
    free = found["freeAsked"]["gpuHours"] - found["freeInForce"]["gpuHours"]
    lost = found["totals"]["inForce"]["lostGpuHours"]
    assert 10 < free <= 16.1 + lost, "a node with 8 GPUs, for two hours, and what is not repeated"
    assert found["fidelity"]["withinTolerance"] == found["fidelity"]["happened"] > 10


@pytest.mark.parametrize(
    ("line", "what", "hint"),
    [
        (
            "--replay 30d --store sqlite:///x",
            "--replay is given without a change",
            "give another tree (--tree), nodes, or both",
        ),
        (
            "--replay 30d --nodes A=+1 --store sqlite:///x --console http://y",
            "--store and --console are given",
            "give one of them",
        ),
        (
            "--console http://y",
            "--console is given without --replay",
            "add --replay with a period, such as 30d",
        ),
        (
            "--nodes A=+1",
            "--nodes is given without --replay",
            "add --replay with a period, such as 30d",
        ),
        (
            "--replay 30d --until-settled --store sqlite:///x",
            "--replay and --until-settled are given",
            "a replay plays the pods of the past alone: give one of them",
        ),
        (
            "--replay 30d --nodes A=2 --store sqlite:///x",
            "`--nodes A=2` changes no number of nodes",
            "write MODEL=+N or MODEL=-N, with N from 1 to 10000",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(line: str, what: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        plan(line)
    assert (caught.value.what, caught.value.hint) == (what, hint)


def test_a_malformed_period_is_refused(past: tuple[str, str, float]) -> None:
    url, tree, now = past
    with pytest.raises(UserError) as caught:
        plan(f"--tree {tree} --replay month --store {url}", now)
    assert caught.value.what == "the period `month` is malformed"
