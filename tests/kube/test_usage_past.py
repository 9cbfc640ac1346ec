"""The cluster as it was, from a recorder on a real control plane, equals what a console that
follows the same cluster showed at that moment.

Nodes, pods and jobs change between the moments, and go on to change by themselves. Recorder and
console each have their own watches, so on a busy machine one of them learns of a change seconds
later than the other. A moment is compared at a heartbeat at which both had seen the same.
`FAIRLEAD_PAST_MOMENTS`: the number of moments, for longer runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from msgspec import structs
from tests.kube.connections import connect
from tests.kube.control_plane import ControlPlane
from tests.kube.kubectl import Kubectl
from tests.kube.kwok_stages import EXIT_CODE, RUN_TIME
from tests.kube.objects import gpu_node, job, namespace, pod, pod_spec
from tests.kube.servers import Server, running
from tests.usage.kept import kept_rows
from tests.usage.past_tables import tables
from tests.waiting import until

from fairlead.console.boards.usage.past import find_moment, read_past
from fairlead.edge.files.clock import WallClock
from fairlead.edge.kube.cluster import KubeCluster
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.store.address import store_address
from fairlead.edge.store.sql_store import SqlStore
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.usage.ledger import StateKind
from fairlead.ports import LedgerReading
from fairlead.wire.usage.states import state_body

SPACE: Final = "usage-past"
NODES: Final = ("past-1", "past-2", "past-3")
MOMENTS: Final = int(os.environ.get("FAIRLEAD_PAST_MOMENTS", "3"))
COMPARED: Final = (StateKind.NODE, StateKind.POD, StateKind.JOB)
"""Kinds of states that must be the same. A console without a quota tree does not follow the others.
"""
SEED: Final = 33


class Churn:
    """Changes what a cluster has in the namespace and on the nodes of this test."""

    def __init__(self, admin: Kubectl) -> None:
        self._admin = admin
        self._chosen = random.Random(SEED)
        self._count = 0
        self._training: list[str] = []

    def act(self) -> None:
        """Some of all changes, in any order."""
        acts: list[Callable[[], None]] = [
            self._create_pods,
            self._create_job,
            self._train,
            self._end_training,
            self._delete_pod,
            self._delete_job,
            self._cordon,
            self._label,
        ]
        for each in self._chosen.sample(acts, k=len(acts) - 1):
            each()

    def _name(self, word: str) -> str:
        self._count += 1
        return f"{word}-{self._count}"

    def _create_pods(self) -> None:
        sizes = [self._chosen.choice((1, 2, 4, 8)) for _ in range(4)]
        self._admin.create(
            [
                *(pod(self._name("some"), namespace=SPACE, gpus=size) for size in sizes),
                pod(self._name("wide"), namespace=SPACE, gpus=9),  # no node has nine
            ]
        )

    def _create_job(self) -> None:
        code = self._chosen.choice(("0", "1"))
        ends = {RUN_TIME: f"{self._chosen.randrange(1, 20)}s", EXIT_CODE: code}
        self._admin.create(
            [job(self._name("job"), namespace=SPACE, parallelism=2, gpus=1, annotations=ends)]
        )

    def _train(self) -> None:
        """What an operator makes of an MPIJob."""
        name, admin = self._name("train"), self._admin
        template = {"spec": pod_spec(gpus=2)}
        del template["spec"]["restartPolicy"]
        part = {"replicas": 1, "restartPolicy": "Never", "template": template}
        made = {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": name, "namespace": SPACE},
            "spec": {"mpiReplicaSpecs": {"Launcher": part, "Worker": part}},
        }
        admin.create([made])
        uid = admin.run("get", "mpijob", name, "-n", SPACE, "-o=jsonpath={.metadata.uid}")
        owner = {key: made[key] for key in ("apiVersion", "kind")}
        owners = [{**owner, "name": name, "uid": uid, "controller": True}]
        labels = {
            "training.kubeflow.org/job-name": name,
            "training.kubeflow.org/operator-name": "mpi-operator",
        }
        admin.create(
            [
                pod(
                    f"{name}-{role}",
                    namespace=SPACE,
                    gpus=2,
                    labels={**labels, "training.kubeflow.org/job-role": role},
                    ownerReferences=owners,
                )
                for role in ("launcher", "worker")
            ]
        )
        self._admin.patch_status("mpijobs", name, SPACE, _status("Running"))
        self._training.append(name)

    def _end_training(self) -> None:
        if self._training:
            name = self._training.pop(0)
            self._admin.patch_status("mpijobs", name, SPACE, _status("Succeeded"))

    def _delete_pod(self) -> None:
        self._delete("pods")

    def _delete_job(self) -> None:
        self._delete("jobs")

    def _delete(self, kind: str) -> None:
        names = [each["metadata"]["name"] for each in self._admin.get(kind, "-n", SPACE)]
        if names:
            name = self._chosen.choice(sorted(names))
            self._admin.run("delete", kind, name, "-n", SPACE, "--now", "--ignore-not-found")

    def _cordon(self) -> None:
        node, closed = self._chosen.choice(NODES), self._chosen.random() < 0.5
        patch = {"spec": {"unschedulable": closed}}
        self._admin.run("patch", "node", node, "-p", json.dumps(patch))

    def _label(self) -> None:
        zone = self._chosen.choice(("zone-a", "zone-b"))
        label = f"topology.kubernetes.io/zone={zone}"
        self._admin.run("label", "node", self._chosen.choice(NODES), label, "--overwrite")


def _first(one: Any, other: Any) -> tuple[str, str]:
    """Where two tables begin to differ."""
    texts = repr(one), repr(other)
    pairs = enumerate(zip(*texts, strict=False))
    place = max(0, next((at for at, (a, b) in pairs if a != b), 0) - 60)
    return texts[0][place : place + 160], texts[1][place : place + 160]


def _status(condition: str) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    shown = {"type": condition, "status": "True", "reason": f"Job{condition}", "message": ""}
    times = {"lastTransitionTime": now, "lastUpdateTime": now}
    ended = {"completionTime": now} if condition == "Succeeded" else {"startTime": now}
    return {**ended, "conditions": [{**shown, **times}]}


async def test_the_past_is_what_a_console_showed_then(
    company: ControlPlane, tmp_path: Path
) -> None:
    churn, store = Churn(company.admin), tmp_path / "store.sqlite"
    company.admin.apply([namespace(SPACE), *map(gpu_node, NODES)])
    then: dict[int, dict[str, Any]] = {}
    try:
        with _recorder(company, store, tmp_path / "recorder.log"):
            async with _followed(company) as cluster, _ledger(store) as ledger:
                for _ in range(MOMENTS):
                    await asyncio.to_thread(churn.act)
                    at, snapshot = await _settled(cluster, ledger)
                    then[at] = tables(snapshot)
    finally:
        company.admin.run("delete", "jobs,mpijobs,pods", "--all", "-n", SPACE, "--now")
        company.admin.run("delete", "node", *NODES)
    async with _ledger(store) as ledger:
        past = {at: await _past(ledger, at) for at in then}
    differing = [
        (at, name, _first(then[at][name], past[at][name]))
        for at in then
        for name in then[at]
        if then[at][name] != past[at][name]
    ]
    assert differing == []
    for name in ("top node", "list", "why", "jobs", "holders", "map"):
        assert len({repr(each[name]) for each in then.values()}) > 1, f"{name} has not changed"


def _recorder(company: ControlPlane, store: Path, log: Path) -> AbstractContextManager[Server]:
    words = (f"--kubeconfig={company.kubeconfig}", f"--store=sqlite:///{store}")
    more = ("--gpu-source=none", f"--lease-namespace={SPACE}")
    return running("usage-recorder", *words, *more, log=log)


@asynccontextmanager
async def _ledger(store: Path) -> AsyncIterator[LedgerReading]:
    """Of a recorder's store, while the recorder writes."""
    opened = SqlStore(store_address(f"sqlite:///{store}"))
    try:
        yield opened.ledger
    finally:
        await opened.close()


@asynccontextmanager
async def _followed(company: ControlPlane) -> AsyncIterator[KubeCluster]:
    async with KubeApi(connect(company.kubeconfig)) as api:
        cluster = KubeCluster(api, WallClock())
        task = asyncio.create_task(cluster.run())
        await until(lambda: cluster.is_ready)
        try:
            yield cluster
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _settled(cluster: KubeCluster, ledger: LedgerReading) -> tuple[int, ClusterSnapshot]:
    """A later heartbeat (milliseconds UTC) at which the ledger has what the console shows, and what
    that is, as of the heartbeat. AssertionError with the states that stay different.

    Events and topologies are not kept of the past.
    """
    since, at, snapshot = time.time() * 1000, 0, cluster.snapshot()
    differing: set[tuple[StateKind, str, bytes]] = set()

    async def is_same() -> bool:
        nonlocal at, snapshot, differing
        at = (await ledger.ledger_bounds()).heartbeat
        states = await ledger.states_at(at, COMPARED)
        snapshot = cluster.snapshot()
        differing = _shown(snapshot) ^ {(each.kind, each.uid, each.body) for each in states}
        return at > since and not differing

    try:
        await until(is_same, pause_seconds=0.5)
    except TimeoutError as error:
        raise AssertionError(sorted(differing)) from error
    return at, structs.replace(snapshot, taken_at=at / 1000, events=(), topologies={})


def _shown(snapshot: ClusterSnapshot) -> set[tuple[StateKind, str, bytes]]:
    rows = kept_rows(snapshot)
    return {(kind, uid, state_body(row)) for kind, uid, _, _, row in rows if kind in COMPARED}


async def _past(ledger: LedgerReading, at: int) -> dict[str, Any]:
    text = datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
    moment, gap = await find_moment(ledger, text, round(time.time() * 1000))
    assert (moment.shown, gap) == (at, "")
    return tables((await read_past(ledger, moment, gap)).snapshot)
