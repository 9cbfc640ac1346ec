"""What boards and rules read is on the pages of the simulated cluster, too.

No node agent, scheduler extender and quota controller runs there as a process of its own. The
simulated GPU exporter prints what boards and rules read of their pages.
"""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from tests.docs.promql import metrics_of, parse
from tests.kube.world_pages import pages_of, world_of
from tests.sim.small_world import SHARED_POOL, live, pod, small_world

from fairlead.wire.metrics.prom_text import parse_page
from fairlead_sim.scenario.scenario import NodePool
from fairlead_sim.world.world import World

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def read_by_boards() -> set[str]:
    found = set[str]()
    for path in sorted((DEPLOY / "grafana").glob("*.json")):
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            for target in panel.get("targets", ()):
                found |= set(metrics_of(parse(target["expr"])))
    return found


def read_by_rules() -> set[str]:
    text = (DEPLOY / "prometheus" / "fairlead.rules.yaml").read_text(encoding="utf-8")
    rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    return {name for rule in rules for name in metrics_of(parse(rule["expr"]))}


NOT_SIMULATED = {
    "ALERTS": "Prometheus's own",
    "fairlead_exporter_pod_map_age_seconds": "simulated cards know their holders",
    "fairlead_gpu_nvlink_up": "the simulated driver does not report it",
    "fairlead_gpushare_allocate_total": "no agent's process answers simulated kubelets",
    "fairlead_usage_recorder_heartbeat_timestamp_seconds": "the laptop's recorder is no process",
}
"""Each with its reason."""


def greedy_world() -> World:
    """A program takes more of a shared card than its grant, because nothing isolates it."""
    shared = NodePool(
        name="shared",
        cpu=32,
        memory="128Gi",
        gpu_model=SHARED_POOL.gpu_model,
        gpus=1,
        shared=True,
        labels={"cgpu.disable.isolation": "true"},
    )
    world = small_world(shared)
    world.cluster.create(pod("greedy", "cuda-malloc:6G", gpu_memory=4, restartPolicy="Always"))
    live(world, 90)
    return world


def simulated() -> set[str]:
    worlds = (*map(world_of, ("default", "telemetry")), greedy_world())
    return {
        sample.name
        for world in worlds
        for page in pages_of(world)
        for sample in parse_page(page).samples
    }


def test_the_simulated_pages_have_what_boards_and_rules_read() -> None:
    read = {name for name in read_by_boards() | read_by_rules() if ":" not in name}
    assert read - simulated() == set(NOT_SIMULATED)
