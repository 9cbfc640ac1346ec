"""The demo of elastic quota in its own simulated cluster.

Document 004, docs/spec/quota.md#the-40-core-demo.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from fairlead.model.keys import QUOTA_CONDITION, QUOTA_GATE, RECLAIM_SCOPE
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.wire.text.tabwriter import render_rows
from fairlead_sim.objects.resources import PODS
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.world import World

SCENARIO: Final = "documents-004"
EPOCH: Final = 1_767_600_000.0
SETTLE_SECONDS: Final = 120.0
"""`SETTLE_SECONDS`: simulated time per step; pods stop within 30 s."""
SPACES: Final = ("namespace1", "namespace2", "namespace3", "namespace4")
Object = dict[str, Any]


class DemoStep(Struct, frozen=True):
    """A step.

    `running`: pods by namespace. `evicted`: number so far. `waiting`: (namespace, reason,
    sentence).
    """

    name: str
    running: dict[str, int]
    evicted: int
    waiting: tuple[tuple[str, str, str], ...]


def play(scope: str, seed: int = 0) -> Iterator[DemoStep]:
    """One step after each Deployment, when nothing changes any more."""
    world = sharing_world(load_scenario(SCENARIO), seed, EPOCH)
    world.warm_up()
    for name in SPACES:
        world.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    world.cluster.create(demo_tree(scope))
    gone: list[str] = []
    world.cluster.subscribe(PODS, lambda change: _note(change, gone))
    _settle(world)
    for number, name in enumerate(SPACES, start=1):
        world.cluster.create(demo_deployment(f"nginx{number}", name))
        _settle(world)
        yield _step(world, f"nginx{number}", len(gone))


def render_demo(steps: list[DemoStep]) -> str:
    rows = [("AFTER", *(name.upper() for name in SPACES), "EVICTED", "WAITING")]
    for step in steps:
        counts = Counter((space, reason) for space, reason, _ in step.waiting)
        waits = ", ".join(
            f"{space} {count} {reason}" for (space, reason), count in sorted(counts.items())
        )
        rows.append(
            (
                step.name,
                *(str(step.running.get(name, "-")) for name in SPACES),
                str(step.evicted),
                waits or "none",
            )
        )
    lines = dict.fromkeys(
        f"{space}: {reason}: {sentence}" for space, reason, sentence in steps[-1].waiting
    )
    return (
        render_rows(rows)
        + "\nWho waits in the end, and why:\n"
        + "".join(f"  {each}\n" for each in lines)
    )


def _settle(world: World) -> None:
    world.run_until(world.clock.now() + SETTLE_SECONDS)


def _step(world: World, name: str, evicted: int) -> DemoStep:
    pods = [pod for space in SPACES for pod in world.cluster.scan(PODS, space)]
    running = Counter(_space(pod) for pod in pods if pod["status"].get("phase") == "Running")
    waiting = [
        pod
        for pod in pods
        if any(gate["name"] == QUOTA_GATE for gate in pod["spec"].get("schedulingGates") or ())
    ]
    return DemoStep(
        name,
        dict(running),
        evicted,
        tuple((_space(pod), *_quota_condition(pod)) for pod in waiting),
    )


def _quota_condition(pod: Object) -> tuple[str, str]:
    condition: Object = next(
        (each for each in pod["status"].get("conditions") or () if each["type"] == QUOTA_CONDITION),
        {},
    )
    return condition.get("reason", ""), condition.get("message", "")


def _space(pod: Object) -> str:
    return str(pod["metadata"]["namespace"])


def _note(change: LoggedChange, gone: list[str]) -> None:
    if change.type == DELETED and _space(change.object) in SPACES:
        gone.append(change.object["metadata"]["name"])


def demo_tree(scope: str) -> Object:
    leaves = [_node(f"root.{parent}.{number}", 10, 20) for parent in "ab" for number in (1, 2)]
    for leaf, name in zip(leaves, SPACES, strict=True):
        leaf["namespaces"] = [name]
    root = _node("root", 40, 40)
    root["attributes"] = {RECLAIM_SCOPE: scope}
    root["children"] = [
        {**_node("root.a", 20, 40), "children": leaves[:2]},
        {**_node("root.b", 20, 40), "children": leaves[2:]},
    ]
    meta = {"name": "elasticquotatree", "namespace": "kube-system"}
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": meta,
        "spec": {"root": root},
    }


def _node(name: str, least: int, most: int) -> Object:
    return {"name": name, "min": {"cpu": least}, "max": {"cpu": most}}


def demo_deployment(name: str, namespace: str) -> Object:
    labels = {"app": name}
    container = {
        "name": "nginx",
        "image": "nginx:1.27",
        "resources": {"limits": {"cpu": "5"}, "requests": {"cpu": "5"}},
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 5, "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
