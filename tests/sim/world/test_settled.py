"""Worlds that start with running workloads, and scenarios written with `count`."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.sim.history import history_hash
from tests.sim.small_world import CPU_POOL, EPOCH, GPU_POOL, NAMESPACE, get, live, small_scenario

from fairlead.errors import UserError
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS
from fairlead_sim.scenario.file import load_scenario, parse_scenario
from fairlead_sim.scenario.scenario import Scenario, ScenarioService

COUNTED = """\
title = "T"
[[node_pools]]
name = "a"
[[teams]]
name = "t"
namespaces = ["t"]
count = 3
[[quota]]
path = "root"
[[quota]]
path = "root.t"
namespaces = ["t"]
count = 3
[[services]]
name = "web"
namespace = "t"
image = "web:1"
count = 3
"""


def settled_scenario(gpu_replicas: int = 3) -> Scenario:
    web = ScenarioService(name="web", namespace=NAMESPACE, image="web:1", replicas=5)
    infer = ScenarioService(
        name="infer", namespace=NAMESPACE, image="infer:1", replicas=gpu_replicas, gpus=1
    )
    return small_scenario(CPU_POOL, GPU_POOL, settled=True, services=(web, infer))


def test_everything_runs_at_the_first_instant_on_its_cards() -> None:
    world = sharing_world(settled_scenario(), 1, EPOCH)
    pods = world.cluster.list(PODS, NAMESPACE)
    assert len(pods) == 8
    assert {
        (pod["status"]["phase"], pod["status"]["containerStatuses"][0]["ready"]) for pod in pods
    } == {("Running", True)}
    assert len({pod["status"]["podIP"] for pod in pods}) == 8
    assert sum(bool(card.holds) for card in world.devices.cards("gpu-1")) == 3
    live(world, 60)
    assert {pod["metadata"]["uid"] for pod in world.cluster.list(PODS, NAMESPACE)} == {
        pod["metadata"]["uid"] for pod in pods
    }
    assert get(world, DEPLOYMENTS, "web")["status"]["availableReplicas"] == 5
    assert len(world.cluster.list(REPLICA_SETS, NAMESPACE)) == 2


def test_a_set_stands_as_its_controller_would_write_it() -> None:
    world = sharing_world(settled_scenario(gpu_replicas=6), 1, EPOCH)
    at_first = {
        each["metadata"]["name"]: each.get("status")
        for each in world.cluster.list(REPLICA_SETS, NAMESPACE)
    }
    live(world, 5)
    later = {
        each["metadata"]["name"]: each["status"]
        for each in world.cluster.list(REPLICA_SETS, NAMESPACE)
    }
    same = {name.rpartition("-")[0] for name in later if at_first[name] == later[name]}
    # not `infer`: two of its pods found no room, so its controller has to look
    assert same == {"web"}


def test_life_goes_on_as_in_any_world() -> None:
    world = sharing_world(settled_scenario(), 1, EPOCH)
    name = next(
        pod["metadata"]["name"]
        for pod in world.cluster.list(PODS, NAMESPACE)
        if pod["metadata"]["name"].startswith("infer")
    )
    world.cluster.delete(PODS, NAMESPACE, name)
    live(world, 60)
    names = [pod["metadata"]["name"] for pod in world.cluster.list(PODS, NAMESPACE)]
    assert name not in names
    assert len(names) == 8
    assert sum(bool(card.holds) for card in world.devices.cards("gpu-1")) == 3
    assert not [
        event for event in world.cluster.list(EVENTS, NAMESPACE) if event["reason"] == "Pulling"
    ]


def test_what_finds_no_room_waits() -> None:
    world = sharing_world(settled_scenario(gpu_replicas=6), 1, EPOCH)
    live(world, 5)
    phases = Counter(pod["status"]["phase"] for pod in world.cluster.list(PODS, NAMESPACE))
    assert phases == {"Running": 9, "Pending": 2}


def test_equal_seeds_give_equal_histories() -> None:
    assert history_hash(settled_scenario(), 3, 120) == history_hash(settled_scenario(), 3, 120)


def test_an_entry_with_a_count_stands_for_that_count() -> None:
    scenario = parse_scenario(COUNTED, "mine.toml")
    assert scenario.namespaces == ("t-1", "t-2", "t-3")
    assert [(node.path, node.namespaces) for node in scenario.quota[1:]] == [
        (f"root.t-{n}", (f"t-{n}",)) for n in (1, 2, 3)
    ]
    assert [(item.name, item.namespace) for item in scenario.services] == [
        (f"web-{n}", f"t-{n}") for n in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'namespaces = ["t"]\ncount = 3\n[[quota]]',
            'namespaces = ["t"]\ncount = 2\n[[quota]]',
            "line 16, key `services[0].namespace`: no team has namespace `t-3`",
        ),
        (
            ('image = "web:1"\ncount = 3'),
            ('image = "web:1"\ncount = 0'),
            "line 18, key `services[0].count`: 0 is not between 1 and 5000",
        ),
    ],
)
def test_faults_of_counted_entries_name_the_line_that_was_written(
    old: str, new: str, message: str
) -> None:
    with pytest.raises(UserError) as caught:
        parse_scenario(COUNTED.replace(old, new, 1), "mine.toml")
    assert message in caught.value.what


def test_the_large_scenario_has_its_promised_size() -> None:
    scenario = load_scenario("large")
    jobs = sum(stream.standing for stream in scenario.streams)
    pods = sum(service.replicas for service in scenario.services) + jobs
    leaves = [node for node in scenario.quota if node.namespaces]
    assert (scenario.node_pools[0].count, scenario.node_pools[0].gpus, pods, jobs, len(leaves)) == (
        5000,
        8,
        50_000,
        2000,
        1000,
    )
