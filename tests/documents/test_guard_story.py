"""Document 001 under the memory guard, on the simulated cluster: see `guard_story`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.cli.api_objects import snapshot_of
from tests.cli.command import run_command
from tests.contracts.simulated import simulated_server
from tests.documents.guard_story import play
from tests.kube.kubectl import Kubectl
from tests.kube.programs import program
from tests.sim.small_world import EPOCH, live

from fairlead.model.devices.device import DeviceProcess
from fairlead.rules.metrics.container_gpu import DENIED, container_families
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import NODES, PODS
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.world import World

Object = dict[str, Any]
NODE = "cn-hangzhou.192.168.2.167"


class SimulatedPlace:
    """The scenario of the document; `kubectl` asks the API server that serves it."""

    back_offs = 6

    def __init__(self, world: World, kubectl: Kubectl) -> None:
        self.world = world
        self._kubectl = kubectl

    def share(self) -> None:
        labels = {"cgpu": "true"}
        self.world.cluster.merge_patch(NODES, None, NODE, {"metadata": {"labels": labels}})

    def apply(self, manifest: Object) -> None:
        manifest["metadata"]["namespace"] = "default"
        self.world.cluster.create(manifest)

    def pod(self, name: str) -> Object:
        return self.world.cluster.get(PODS, "default", name) or {}

    def log(self, pod: str, *, previous: bool = False) -> Sequence[str]:
        return self._kubectl.run("logs", pod, f"--previous={previous}").splitlines()

    def memory(self, pod: str) -> str:
        """In the document's width: driver 570 pads the total by one blank more than its 418."""
        shown = self._kubectl.run("exec", pod, "--", "nvidia-smi")
        (used, total), *others = re.findall(r"(\d+)MiB / +(\d+)MiB", shown)
        assert not others, "one GPU"
        return f"{used}MiB / {total:>5}MiB"

    def used_mib(self, pod: str) -> int:
        return sum((each.memory_used_bytes or 0) >> 20 for each in self._processes(pod))

    def denied(self, pod: str) -> int:
        (family,) = (
            each
            for each in container_families(self.world.devices.sample())
            if each.metric == DENIED
        )
        at = family.metric.labels.index("pod_name")
        return sum(
            int(value or 0)
            for key, value in zip(family.keys, family.values, strict=True)
            if key[at] == pod
        )

    def inspected(self, *flags: str) -> str:
        objects = (self.world.cluster.list(NODES), self.world.cluster.list(PODS))
        return run_command(" ".join(("inspect gpu", *flags)), snapshot_of(*objects), "fairlead").out

    def wait(self, what: str, is_so: Callable[[], object]) -> None:
        end = self.world.clock.now() + 3600
        while not is_so():
            assert self.world.clock.now() < end, f"not within an hour: {what}"
            live(self.world, 2)

    def _processes(self, pod: str) -> list[DeviceProcess]:
        found = [each for card in self.world.devices.sample() for each in card.processes]
        return [each for each in found if each.pod == pod]


def test_the_story(tmp_path: Path) -> None:
    world: World = sharing_world(load_scenario("documents-001"), 0, EPOCH)
    world.warm_up()
    with simulated_server(
        tmp_path, world.clock, cluster=world.cluster, written=world.logs, programs=world.programs
    ) as server:
        kubectl = Kubectl(program("kubectl"), server.kubeconfig, tmp_path)
        play(SimulatedPlace(world, kubectl))
