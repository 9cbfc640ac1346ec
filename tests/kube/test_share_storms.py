"""Storms over shared GPUs with real programs: kube-scheduler, API server and Fairlead's extender
die one after the other while pods are created and deleted.

Two of four seeds of 54 pods (twelve with FAIRLEAD_ALL_STORMS=1) on one control plane, every kind of
accident in each. In memory (tests/apps/test_share_storm.py) storms are larger and time jumps. Here
the real programs run, and the truth is the API server's own watch, checked event by event.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.extender import SYSTEM, Extender
from tests.kube.fault_proxy import running_fault_proxy
from tests.kube.kubectl import KubectlError
from tests.kube.kwok_stages import DELETE_DELAY, RUN_TIME
from tests.kube.objects import namespace
from tests.kube.share_line import ShareLine
from tests.kube.share_truth import ShareTruth
from tests.kube.sharing_words import as_real, ready
from tests.turns import in_turn
from tests.waiting import wait_until

from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.need import gpu_need
from fairlead.rules.sharing.ledger import ledger_of
from fairlead.rules.sharing.why import why_no_room
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scenario.scenario import NodePool, Scenario

Object = dict[str, Any]
POOLS = (
    NodePool(
        name="big",
        count=3,
        cpu=64,
        memory="256Gi",
        gpu_model="Tesla V100-SXM2-16GB",
        gpus=4,
        shared=True,
    ),
    NodePool(
        name="small", count=2, cpu=64, memory="256Gi", gpu_model="Tesla T4", gpus=1, shared=True
    ),
)
SEEDS = range(1, 13) if os.environ.get("FAIRLEAD_ALL_STORMS") else in_turn((2, 3, 4, 12), 2)
BATCHES = 6
PODS_A_BATCH = 9
AWAY_SECONDS = {4: 20.0, 11: 20.0, 2: 2.0, 7: 3.0, 12: 6.0}
"""In these seeds the API server is away for this number of seconds, in the middle of the storm."""
GRANT = "fairlead.io/gpu-allocation"
DAMAGE = (
    [f"{GRANT}={{garbled"],
    [f"{GRANT}=null"],
    [f"{GRANT}-", "scheduler.framework.gpushare.allocation-", "ALIYUN_COM_GPU_MEM_IDX-"],
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        nodes = sharing_world(
            Scenario(title="storm", node_pools=POOLS), 1, 1_767_600_000.0
        ).cluster.list(NODES)
        made.admin.create([namespace(SYSTEM), *(as_real(node) for node in nodes)])
        wait_until("the nodes are ready", lambda: len(ready(made)) == len(nodes))
        yield made


@pytest.fixture(scope="module")
def line(cluster: ControlPlane) -> Iterator[ShareLine]:
    with running_fault_proxy(cluster) as proxy:
        made = ShareLine(cluster, proxy)
        try:
            yield made
        finally:
            made.stop()


class Storm:
    """Users and accidents of one seed."""

    def __init__(self, cluster: ControlPlane, line: ShareLine, seed: int) -> None:
        self.rng = random.Random(seed)
        self.damaged: set[str] = set()
        self._chance = random.Random(-seed)
        self._seed = seed
        self._cluster = cluster
        self._line = line
        self._made = 0

    def blow(self, truth: ShareTruth) -> None:
        for number in range(BATCHES):
            people = threading.Thread(target=self._people, args=(truth,))
            people.start()
            self._accident(number)
            people.join()
            if number == BATCHES // 2 and self._seed in AWAY_SECONDS:
                self._line.api_server_away(AWAY_SECONDS[self._seed])

    def clear(self) -> None:
        self._cluster.admin.run(
            "delete",
            "pods",
            "--all",
            "-n",
            "default",
            "--force",
            "--grace-period=0",
            "--wait",
            seconds=120,
        )

    def _accident(self, number: int) -> None:
        """Each kind in turn, starting with another one in the next seed, at a random moment."""
        time.sleep(self._chance.uniform(0.1, 0.9))
        kinds = self._line.accidents
        kinds[(self._seed + number) % len(kinds)](self._chance)

    def _people(self, truth: ShareTruth) -> None:
        self._cluster.admin.create([self._random_pod() for _ in range(PODS_A_BATCH)])
        self._delete_some(truth)
        self._damage_one(truth)
        self._bind_again(truth)

    def _damage_one(self, truth: ShareTruth) -> None:
        """A user who may write grants damages one while its pod runs."""
        running = [
            pod for pod in truth.bound() if pod.phase == "Running" and pod.deleted_at is None
        ]
        if running and self.rng.random() < 0.5:
            pod = self.rng.choice(running)
            self.damaged.add(pod.uid)
            with contextlib.suppress(KubectlError):  # it has ended meanwhile
                self._cluster.admin.run(
                    "annotate",
                    "pod",
                    pod.name,
                    "-n",
                    "default",
                    "--overwrite",
                    *self.rng.choice(DAMAGE),
                )

    def _delete_some(self, truth: ShareTruth) -> None:
        names = [pod.name for pod in truth.pods.values() if pod.deleted_at is None]
        if names:
            self._cluster.admin.run(
                "delete",
                "pods",
                "-n",
                "default",
                "--wait=false",
                "--ignore-not-found",
                *self.rng.sample(names, min(3, len(names))),
            )

    def _bind_again(self, truth: ShareTruth) -> None:
        """Bind a bound pod once more, to the same node and to another; both must have no effect."""
        for pod in truth.bound()[-2:]:
            for node in (pod.node, self.rng.choice(list(truth.nodes))):
                asked = {
                    "PodName": pod.name,
                    "PodNamespace": "default",
                    "PodUID": pod.uid,
                    "Node": node,
                }
                try:
                    self._line.extenders[self._line.leader].ask("bind", asked)
                except (OSError, ValueError, http.client.HTTPException):  # it is being killed
                    return

    def _random_pod(self) -> Object:
        self._made += 1
        rng = self.rng
        parts, cards = [rng.choice((1, 2, 3, 4, 4, 6, 8, 11, 14))], 1
        init: list[Object] = []
        shape = rng.random()
        if shape < 0.15:
            cards = rng.choice((2, 3))
            parts = [parts[0] * cards]
        elif shape < 0.35:
            parts = [rng.randint(1, 6), rng.randint(1, 6)]
        elif shape < 0.5:
            init = [_container("init", rng.randint(1, 8))]
            if rng.random() < 0.6:
                init.insert(
                    rng.randrange(2),
                    {**_container("sidecar", rng.randint(1, 4)), "restartPolicy": "Always"},
                )
        annotations = {
            DELETE_DELAY: f"{rng.randint(0, 3000)}ms",
            **({RUN_TIME: f"{rng.randint(1000, 4000)}ms"} if rng.random() < 0.6 else {}),
        }
        metadata = {
            "name": f"storm{self._seed}-p{self._made}",
            "namespace": "default",
            "annotations": annotations,
        }
        spec: Object = {
            "schedulerName": "fairlead-scheduler",
            "terminationGracePeriodSeconds": 30,
            "restartPolicy": "Never",
            "containers": [_container(f"c{number}", units) for number, units in enumerate(parts)],
        }
        if init:
            spec["initContainers"] = init
        if cards > 1:
            metadata["labels"] = {"aliyun.com/gpu-count": str(cards)}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(name: str, units: int) -> Object:
    return {
        "name": name,
        "image": "app:1",
        "resources": {"limits": {"cpu": "10m", "memory": "8Mi", "aliyun.com/gpu-mem": str(units)}},
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_no_card_is_ever_sold_twice_and_nothing_is_lost(
    cluster: ControlPlane, line: ShareLine, seed: int
) -> None:
    line.ready()
    storm, truth = Storm(cluster, line, seed), ShareTruth(cluster)
    try:
        storm.blow(truth)
        line.ready()
        wait_until("each waiting pod finds no room", lambda: not _forgotten(truth))
        _check_end(storm, line, truth)
    except (AssertionError, TimeoutError, KubectlError) as error:
        message = "\n".join(
            (
                *(f"{name}: {why}" for name, why in _reported(truth, _forgotten(truth))),
                *(each.log_tail() for each in line.running()),
            )
        )
        again = f"python -m pytest tests/kube/test_share_storms.py -k '[{seed}]'"
        raise AssertionError(f"storm {seed}: {error}; again: {again}\n{message}") from error
    finally:
        truth.stop()
        storm.clear()


def _forgotten(truth: ShareTruth) -> list[str]:
    """Pods that wait although there is room for them."""
    pods = list(truth.pods.values())
    ledger = ledger_of(ClusterSnapshot(nodes=tuple(truth.nodes.values()), pods=tuple(pods)))
    return [pod.name for pod in truth.waiting() if not why_no_room(ledger, pod)]


def _reported(truth: ShareTruth, names: list[str]) -> list[tuple[str, str]]:
    return [
        (pod.name, "; ".join(each.message for each in pod.conditions))
        for pod in truth.waiting()
        if pod.name in names
    ]


def _check_end(storm: Storm, line: ShareLine, truth: ShareTruth) -> None:
    assert not truth.faults, truth.faults[:3]
    assert len(truth.placements) > BATCHES * PODS_A_BATCH // 4, (
        "a storm in which little is bound proves little"
    )
    for uid, seen in truth.placements.items():
        assert len(seen) == 1, f"pod {uid} was seen on {seen}"
    for pod in truth.bound():
        wanted = {
            part.name: part.limits["aliyun.com/gpu-mem"]
            for part in (*pod.containers, *pod.init_containers)
        }
        held = {name: sum(grant.units for grant in given) for name, given in pod.grants.items()}
        assert held == wanted or (not held and pod.uid in storm.damaged), (
            f"{pod.name} holds {held} and asked for {wanted}"
        )
        assert gpu_need(pod).units
    leader = line.extenders[line.leader]
    try:
        wait_until(
            "the extender knows what the API server knows", lambda: not _apart(leader, truth)
        )
    except TimeoutError as error:
        raise AssertionError(
            f"{error}: {_apart(leader, truth)}; damaged: {sorted(storm.damaged)}"
        ) from error


def _apart(extender: Extender, truth: ShareTruth) -> list[str]:
    """The pods on whose cards the extender and the API server disagree, with both values.

    Only an extender that saw a grant before it was damaged knows it: another one may have died
    before it could write it again.
    """
    reported, held = _as_reported(extender), truth.held()
    return [
        f"{uid}: {reported.get(uid)}, not {held.get(uid)}; API server: {truth.pods.get(uid)}"
        for uid in {*reported, *held}
        if reported.get(uid) != held.get(uid)
        and (uid in reported or (uid in truth.pods and truth.pods[uid].grants))
    ]


def _as_reported(extender: Extender) -> dict[str, dict[str, int]]:
    """Units by the uid of the pod, then by the UUID of the card, as the extender reports them."""
    reported: dict[str, dict[str, int]] = {}
    for card in (card for node in extender.inspect().values() for card in node["devs"]):
        assert card["usedGPU"] == sum(pod["usedGPU"] for pod in card["pods"]), card
        for pod in card["pods"]:
            reported.setdefault(pod["uid"], {})[card["uuid"]] = pod["usedGPU"]
    return reported
