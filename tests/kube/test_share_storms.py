"""Storms over shared GPUs on the real thing: kube-scheduler, API server and our extender, each of which dies, while pods come and go.

Few and small beside those in memory (tests/apps/test_share_storm.py), which know every fault; here the real programs are asked.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.extender import SYSTEM, Extender, scheduler_for
from tests.kube.fault_proxy import FaultProxy, lost_reply, running_fault_proxy, too_many_requests
from tests.kube.kubectl import KubectlError, wait_until
from tests.kube.kwok_stages import DELETE_DELAY, RUN_TIME
from tests.kube.objects import namespace
from tests.kube.share_truth import ShareTruth
from tests.kube.test_sharing_words import as_real, ready

from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.gpu_need import gpu_need
from fairlead.rules.share_ledger import ledger_of
from fairlead.rules.share_why import why_no_room
from fairlead.sharing_hooks import sharing_world
from fairlead.sim.resources import NODES
from fairlead.sim.scenario import NodePool, Scenario

Object = dict[str, Any]
POOLS = (
    NodePool(name="big", count=3, cpu=64, memory="256Gi", gpu_model="Tesla V100-SXM2-16GB", gpus=4, shared=True),
    NodePool(name="small", count=2, cpu=64, memory="256Gi", gpu_model="Tesla T4", gpus=1, shared=True),
)
SEEDS = (1, 2)
BATCHES = 14
PODS_A_BATCH = 9


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        nodes = sharing_world(Scenario(title="storm", node_pools=POOLS), 1, 1_767_600_000.0).cluster.list(NODES)
        made.admin.create([namespace(SYSTEM), *(as_real(node) for node in nodes)])
        wait_until("the nodes are ready", lambda: len(ready(made)) == len(nodes))
        yield made


@pytest.fixture(scope="module")
def proxy(cluster: ControlPlane) -> Iterator[FaultProxy]:
    with running_fault_proxy(cluster) as made:
        yield made


class Storm:
    """Two extenders behind a proxy that loses replies, each with a kube-scheduler of its own; one of the two schedulers runs."""

    def __init__(self, cluster: ControlPlane, proxy: FaultProxy, seed: int) -> None:
        self.rng = random.Random(seed)
        self._chance = random.Random(-seed)
        self.name = f"storm{seed}"
        self._cluster = cluster
        self._proxy = proxy
        server = proxy.kubeconfig.read_text().split("server: ")[1].split()[0].strip('"')
        self.extenders = [Extender(cluster, f"{self.name}-extender-{side}", server=server) for side in "ab"]
        self.schedulers = [
            scheduler_for(cluster, each, f"{self.name}-scheduler-{side}") for each, side in zip(self.extenders, "ab", strict=True)
        ]
        self.leader = 0
        self._made = 0

    def start(self) -> None:
        for extender in self.extenders:
            extender.start()
        self.schedulers[0].start()

    def stop(self) -> None:
        for component in (*self.schedulers, *(extender.component for extender in self.extenders)):
            component.stop()
        self._cluster.admin.run("delete", "pods", "--all", "-n", "default", "--force", "--grace-period=0", "--wait", seconds=120)

    def running(self) -> list[Component]:
        return [self.schedulers[self.leader], *(extender.component for extender in self.extenders)]

    def accident(self, number: int) -> None:
        """Each kind in its turn, at a random moment."""
        time.sleep(self._chance.uniform(0.5, 2.5))
        kind = number % 5
        if kind == 0:
            extender = self.extenders[self.leader]
            extender.component.kill()
            extender.component.start()
        elif kind in (1, 3):
            for _ in range(self._chance.randint(1, 4)):
                self._proxy.plan(lost_reply("binding"))
            self._proxy.plan(too_many_requests("binding", 1))
        elif kind == 2:
            self.schedulers[self.leader].kill()
            self.leader = 1 - self.leader
            self.schedulers[self.leader].start()
        else:
            self._proxy.close_streams()

    def people(self, truth: ShareTruth) -> None:
        self._cluster.admin.create([self._random_pod() for _ in range(PODS_A_BATCH)])
        self._delete_some(truth)
        self._bind_again(truth)

    def _delete_some(self, truth: ShareTruth) -> None:
        names = [pod.name for pod in truth.pods.values() if pod.deleted_at is None]
        if names:
            self._cluster.admin.run(
                "delete", "pods", "-n", "default", "--wait=false", "--ignore-not-found", *self.rng.sample(names, min(3, len(names)))
            )

    def _bind_again(self, truth: ShareTruth) -> None:
        """What is bound is bound once more, there and elsewhere; nothing comes of it."""
        for pod in truth.bound()[-2:]:
            for node in (pod.node, self.rng.choice(list(truth.nodes))):
                asked = {"PodName": pod.name, "PodNamespace": "default", "PodUID": pod.uid, "Node": node}
                try:
                    self.extenders[self.leader].ask("bind", asked)
                except (OSError, ValueError):
                    return

    def _random_pod(self) -> Object:
        self._made += 1
        rng = self.rng
        parts, init, cards = [rng.choice((1, 2, 3, 4, 4, 6, 8, 11, 14))], 0, 1
        shape = rng.random()
        if shape < 0.15:
            cards = rng.choice((2, 3))
            parts = [parts[0] * cards]
        elif shape < 0.35:
            parts = [rng.randint(1, 6), rng.randint(1, 6)]
        elif shape < 0.5:
            init = rng.randint(1, 10)
        annotations = {
            DELETE_DELAY: f"{rng.randint(0, 3000)}ms",
            **({RUN_TIME: f"{rng.randint(1000, 4000)}ms"} if rng.random() < 0.6 else {}),
        }
        metadata = {"name": f"{self.name}-p{self._made}", "namespace": "default", "annotations": annotations}
        spec: Object = {
            "schedulerName": "fairlead-scheduler",
            "terminationGracePeriodSeconds": 30,
            "restartPolicy": "Never",
            "containers": [_container(f"c{number}", units) for number, units in enumerate(parts)],
        }
        if init:
            spec["initContainers"] = [_container("init", init)]
        if cards > 1:
            metadata["labels"] = {"aliyun.com/gpu-count": str(cards)}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(name: str, units: int) -> Object:
    return {"name": name, "image": "app:1", "resources": {"limits": {"cpu": "10m", "memory": "8Mi", "aliyun.com/gpu-mem": str(units)}}}


@pytest.mark.parametrize("seed", SEEDS)
def test_no_card_is_ever_sold_twice_and_nothing_is_lost(cluster: ControlPlane, proxy: FaultProxy, seed: int) -> None:
    storm, truth = Storm(cluster, proxy, seed), ShareTruth(cluster)
    try:
        storm.start()
        for number in range(BATCHES):
            people = threading.Thread(target=storm.people, args=(truth,))
            people.start()
            storm.accident(number)  # here, not in the thread: what a thread starts, the kernel ends with it (component.py, pdeathsig)
            people.join()
            if number == BATCHES // 2:
                _api_server_away(cluster, seconds=20 if seed == 1 else 3)
        wait_until("whoever waits finds no room", lambda: not _forgotten(truth), seconds=60)
        _check_end(storm, truth)
    except (AssertionError, TimeoutError, KubectlError) as error:
        told = "\n".join(
            (*(f"{name}: {why}" for name, why in _told(truth, _forgotten(truth))), *(each.log_tail() for each in storm.running()))
        )
        again = f"python -m pytest tests/kube/test_share_storms.py -k '[{seed}]'"
        raise AssertionError(f"storm {seed}: {error}; again: {again}\n{told}") from error
    finally:
        truth.stop()
        storm.stop()


def _api_server_away(cluster: ControlPlane, seconds: float) -> None:
    cluster.components["kube-apiserver"].kill()
    time.sleep(seconds)
    cluster.start_component("kube-apiserver")


def _forgotten(truth: ShareTruth) -> list[str]:
    """Pods that wait though there is room for them."""
    pods = list(truth.pods.values())
    ledger = ledger_of(ClusterSnapshot(nodes=tuple(truth.nodes.values()), pods=tuple(pods)))
    return [pod.name for pod in truth.waiting() if not why_no_room(ledger, pod)]


def _told(truth: ShareTruth, names: list[str]) -> list[tuple[str, str]]:
    return [(pod.name, "; ".join(each.message for each in pod.conditions)) for pod in truth.waiting() if pod.name in names]


def _check_end(storm: Storm, truth: ShareTruth) -> None:
    assert not truth.faults, truth.faults[:3]
    assert len(truth.placements) > BATCHES * PODS_A_BATCH // 4, "a storm in which little is bound proves little"
    for uid, seen in truth.placements.items():
        assert len(seen) == 1, f"pod {uid} was seen on {seen}"
    for pod in truth.bound():
        wanted = {part.name: part.limits["aliyun.com/gpu-mem"] for part in (*pod.containers, *pod.init_containers)}
        assert {name: sum(grant.units for grant in given) for name, given in pod.grants.items()} == wanted, pod.name
        assert gpu_need(pod).units
    leader = storm.extenders[storm.leader]
    wait_until("the extender knows what the API server knows", lambda: _as_inspected(leader) == _as_booked(truth), seconds=30)


def _as_inspected(extender: Extender) -> dict[str, list[int]]:
    return {name: [card["usedGPU"] for card in node["devs"]] for name, node in extender.inspect().items()}


def _as_booked(truth: ShareTruth) -> dict[str, list[int]]:
    ledger = ledger_of(ClusterSnapshot(nodes=tuple(truth.nodes.values()), pods=tuple(truth.pods.values())))
    return {name: [card.used for card in account.cards] for name, account in ledger.nodes.items()}
