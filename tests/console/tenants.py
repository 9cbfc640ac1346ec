"""Two tenants on one cluster: Bob's team, always the same, and others, which a test varies.

Every name of the others contains `MARK`, so that an answer can be searched for them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from tests.console.clusters import (
    EPOCH,
    GATED,
    cluster,
    cpu_node,
    gpu_node,
    pod,
    reading,
    shared_node,
    training_job,
)
from tests.console.data_parts import StillData, claim, data_set, runtime
from tests.console.worlds import still_world

from fairlead.model.actions import ObjectRef
from fairlead.model.devices.gpu import GpuReading, Grant
from fairlead.model.event import Event
from fairlead.model.jobs.acceleration import AccelerationFacts, DataUser
from fairlead.model.jobs.data_details import DataReasons, DataSetFacts
from fairlead.model.jobs.datasets import FoundData
from fairlead.model.jobs.job import Job
from fairlead.model.jobs.serving import ServingObjects, ServingWorkload
from fairlead.model.keys import ANNOTATION_SUSPENDED_FOR, QUOTA_CONDITION
from fairlead.model.node import Condition
from fairlead.model.people.rows import UserRole
from fairlead.model.people.subject import LOCAL_ADMIN, Subject
from fairlead.model.pod import ContainerState, ContainerStatus, Owner, Pod
from fairlead.model.quota.rows import Namespace
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source
from fairlead.ports import LogRequest, Ports

MARK = "zqx"
OWN = ("team-a", "team-b")
USER = "arena.kubeflow.org/console-user"
IDLE = 2
"""The card of gpu-1 that is idle: another team's, if it holds one."""
RUNNING = ContainerStatus("main", state=ContainerState.RUNNING, started_at=EPOCH - 280)
BOB = Subject(
    "Bob",
    UserRole.RESEARCHER,
    "bob",
    frozenset(OWN),
    frozenset({"group-a"}),
    frozenset({"root.a.1"}),
)
NEWCOMER = Subject("New", UserRole.RESEARCHER, "new")


class SignedIn:
    """`Subjects` whose subject a test replaces."""

    def __init__(self, subject: Subject = LOCAL_ADMIN) -> None:
        self.subject = subject

    async def of(self, request: Request) -> Subject:
        return self.subject


class Others(Struct, frozen=True):
    """What the other tenants have. `held`: number of the node's GPUs that they hold, `cores`: what
    their pods use of the quota tree, `units`: of the second shared card. The rest has no figure.
    """

    team: str = f"{MARK}-team"
    user: str = f"{MARK}-user"
    leaf: str = f"{MARK}leaf"
    held: int = 1
    cores: int = 20
    units: int = 8
    small_pods: int = 1
    jobs: int = 1
    waiting: int = 0
    events: int = 1
    splits: int = 1

    @property
    def claimant(self) -> str:
        return f"{self.team}/{MARK}-claimant"


_NAMES = st.text("abcdefgh0123456789", min_size=1, max_size=4).map(lambda end: f"{MARK}{end}")
SIZES = {"held": st.integers(0, 2), "cores": st.integers(0, 20), "units": st.integers(0, 20)}
NAMES = {
    "team": _NAMES,
    "user": _NAMES,
    "leaf": _NAMES,
    "small_pods": st.integers(0, 3),
    "jobs": st.integers(0, 3),
    "waiting": st.integers(0, 2),
    "events": st.integers(0, 2),
    "splits": st.integers(1, 3),
}
SAME_FIGURES = st.builds(Others, **NAMES)
"""Others that hold and use the same, under any names and with any other objects."""
ANY = st.builds(Others, **NAMES, **SIZES)


FAR = (f"{MARK}-far", f"{MARK}-gone")
"""Namespaces of a leaf elsewhere. The second does not exist, which is a fault of the tree."""


def tree(others: Others) -> QuotaNode:
    """Leaf root.a.1 is Bob's; root.a has another leaf, and so has the root."""
    gpu = "nvidia.com/gpu"
    own = QuotaNode(
        "root.a.1",
        "root.a.1",
        "root.a",
        {"cpu": 10_000, gpu: 1},
        {"cpu": 30_000, gpu: 7},
        OWN,
    )
    near = QuotaNode(
        f"root.a.{others.leaf}",
        f"root.a.{others.leaf}",
        "root.a",
        {"cpu": 5000},
        {"cpu": 30_000, gpu: 7},
        (others.team,),
    )
    far = QuotaNode(f"root.{others.leaf}", f"root.{others.leaf}", "root", {"cpu": 10_000}, {}, FAR)
    a = QuotaNode(
        "root.a", "root.a", "root", {"cpu": 20_000, gpu: 2}, {gpu: 7}, children=(own, near)
    )
    whole = {"cpu": 40_000, gpu: 7}
    return QuotaNode("root", "root", "", whole, whole, children=(a, far))


def own_pods(others: Others, job: Job, waits: Job) -> list[Pod]:
    """Bob's: two workers, one that shares a card, one that waits for quota, and one for a node."""
    gated = _owned(pod("bob-gated", "", {"cpu": 25_000}, gates=GATED))
    text = f"cpu asks 25; root 40/40 in use; biggest borrowers: root.{others.leaf} +5"
    return [
        *(
            replace(
                _of("bob", pod(f"bert-worker-{n}", "gpu-1", {"nvidia.com/gpu": 1}, job=job)),
                statuses=(RUNNING,),
            )
            for n in range(2)
        ),
        _of(
            "bob",
            pod(
                "bob-share",
                "share-1",
                {"aliyun.com/gpu-mem": 8},
                namespace="team-b",
                grants={"main": (Grant("GPU-share-1-0", 0, 8),)},
            ),
        ),
        replace(
            _of("bob", gated),
            conditions=(
                Condition(QUOTA_CONDITION, "False", "WaitingForIdleQuota", text, EPOCH - 100),
            ),
        ),
        pod(
            "waits-worker-0",
            "",
            {"nvidia.com/gpu": 3},
            job=waits,
            conditions=(
                Condition("PodScheduled", "False", "Unschedulable", "0/3 nodes", EPOCH - 99),
            ),
        ),
    ]


def _owned(made: Pod) -> Pod:
    """Of a ReplicaSet, which makes it again: such pods may borrow quota."""
    return replace(made, owners=(Owner("ReplicaSet", "web", f"uid-{made.namespace}", True),))


def _of(user: str, made: Pod) -> Pod:
    return replace(made, labels={**made.labels, USER: user})


def other_pods(others: Others) -> list[Pod]:
    """On the same node and card as Bob's, and some without a figure."""
    team = others.team
    found = [
        replace(
            pod(f"{MARK}-gpu-{n}", "gpu-1", {"nvidia.com/gpu": 1}, namespace=team),
            created_at=EPOCH - 9000,
            started_at=EPOCH - 9000,
        )
        for n in range(others.held)
    ]
    share = others.units // others.splits
    sizes = [share] * (others.splits - 1) + [others.units - share * (others.splits - 1)]
    found += [
        pod(
            f"{MARK}-share-{n}",
            "share-1",
            {"aliyun.com/gpu-mem": size},
            namespace=team,
            grants={"main": (Grant("GPU-share-1-0", 0, size),)},
        )
        for n, size in enumerate(sizes)
        if size
    ]
    found += [_owned(pod(f"{MARK}-cpu", "cpu-1", {"cpu": others.cores * 1000}, namespace=FAR[0]))]
    found += [
        pod(f"{MARK}-small-{n}", "cpu-1", {}, namespace=team) for n in range(others.small_pods)
    ]
    found += [
        pod(f"{MARK}-done-{n}", "gpu-1", {"nvidia.com/gpu": 1}, namespace=team, phase="Succeeded")
        for n in range(others.jobs)
    ]
    found += [
        _owned(pod(f"{MARK}-waits-{n}", "", {"cpu": 38_000}, namespace=f"{MARK}-far", gates=GATED))
        for n in range(others.waiting)
    ]
    return [_of(others.user, each) for each in found]


def snapshot(others: Others) -> ClusterSnapshot:
    """`others.held` cards of gpu-1 and a share of a card are theirs."""
    bert = _labelled(training_job(), "bob")
    waits = _labelled(training_job("waits", 1, 3, state="Created"), "bob")
    lent = replace(
        training_job("lent", suspended=True, state="Suspended"),
        annotations={ANNOTATION_SUSPENDED_FOR: others.claimant},
    )
    theirs = [
        _labelled(
            training_job(f"{MARK}-job-{n}", namespace=others.team, state="Succeeded"), others.user
        )
        for n in range(others.jobs)
    ]
    pods = [*own_pods(others, bert, waits), *other_pods(others)]
    root = tree(others)
    made = cluster(
        [gpu_node(gpus=8), shared_node(), cpu_node()],
        pods,
        [bert, waits, lent, *theirs],
        _readings(pods, others),
        root,
        events=_events(others),
        sources={
            "nodes": Source("nodes", good_at=EPOCH),
            "pods": Source("pods", message=f"1 of 9 cannot be read: {MARK}/x", good_at=EPOCH),
            "elasticquotatrees": Source(
                "elasticquotatrees", message=f"node {others.leaf} is malformed", good_at=EPOCH
            ),
            "namespaces": Source("namespaces", good_at=EPOCH),
        },
        namespaces=tuple(map(Namespace, sorted({*OWN, others.team, f"{MARK}-far"}))),
        quota_tree=QuotaTree("elasticquotatree", "kube-system", root),
    )
    return replace(made, isolated={others.team: others.user})


def _labelled(job: Job, user: str) -> Job:
    return replace(job, labels={**job.labels, USER: user})


def _readings(pods: list[Pod], others: Others) -> list[GpuReading]:
    """One reading per card of gpu-1, the first ones with their holders."""
    held = [each for each in pods if each.node == "gpu-1" and each.is_holding]
    own_first = sorted(held, key=lambda each: each.namespace not in OWN)
    return [
        reading(
            index=n,
            holder=own_first[n] if n < len(own_first) else None,
            ratio=0.0 if n == IDLE else 0.5,
            idle_since=EPOCH - 7200 if n == IDLE else None,
        )
        for n in range(8)
    ]


def _events(others: Others) -> tuple[Event, ...]:
    """Of Bob's objects, one by the quota controller; of a node; of others' objects."""
    name = "bert-worker-0"
    own = Event(
        "team-a", "e1", "uid-e1", "Warning", "BackOff", "it fails", "Pod", "team-a", name,
        f"uid-{name}", at=EPOCH - 50,
    )  # fmt: skip
    taken = replace(
        own,
        name="e2",
        uid="uid-e2",
        reason="QuotaReclaimed",
        message=f"{others.claimant} takes back 4 of root.{others.leaf}",
    )
    node = Event(
        "default", "e3", "uid-e3", "Warning", "OOM", f"{MARK}-victim", "Node", "", "gpu-1",
        at=EPOCH - 40,
    )  # fmt: skip
    theirs = [
        replace(own, namespace=others.team, object_namespace=others.team, uid=f"{MARK}{n}",
                name=f"{MARK}{n}", message=f"{MARK} fails", object_name=f"{MARK}-gpu-0",
                object_uid="")
        for n in range(others.events)
    ]  # fmt: skip
    return (own, taken, node, *theirs)


class TenantsFiles:
    """`ports.JobFiles` whose answers for Bob's jobs name another team where Fairlead writes so."""

    def __init__(self, others: Others) -> None:
        self.others = others

    async def may_read_logs(self, namespace: str, account: str) -> bool:
        return True

    async def log(
        self, namespace: str, pod: str, wish: LogRequest, account: str
    ) -> AsyncGenerator[bytes, None]:
        yield f"log of {namespace}/{pod}\n".encode()

    async def manifest(self, job: Job, account: str) -> Any:
        return {
            "apiVersion": job.api_version,
            "kind": job.kind,
            "metadata": {
                "name": job.name,
                "namespace": job.namespace,
                "annotations": dict(job.annotations)
                | {ANNOTATION_SUSPENDED_FOR: self.others.claimant},
            },
        }

    async def events(
        self, namespace: str, uids: Collection[str], account: str
    ) -> tuple[Event, ...]:
        return tuple(
            each
            for each in _events(self.others)
            if each.about_namespace == namespace and each.object_uid in uids
        )


class TenantsServings:
    """`ports.ServingQuestions` with a serving job of each tenant."""

    def __init__(self, others: Others) -> None:
        self.others = others

    async def read(self) -> ServingObjects:
        return ServingObjects(
            tuple(
                ServingWorkload(
                    "Deployment",
                    namespace,
                    f"{name}-v1-custom-serving",
                    labels={
                        "servingType": "custom-serving",
                        "servingName": name,
                        "servingVersion": "v1",
                    },
                )
                for namespace, name in (
                    ("team-a", "bob-model"),
                    (self.others.team, f"{MARK}-model"),
                )
            )
        )


class TenantsData:
    """`ports.DataQuestions`: Bob's claim with its data set, to which a data set of the others
    refers, and claims and data sets of the others.
    """

    def __init__(self, others: Others) -> None:
        self.others = others

    async def _still(self) -> StillData:
        team, name = self.others.team, f"{MARK}-raw"
        found = StillData(
            claim("raw", "team-a"),
            data_set("raw-acc", "raw", "team-a", references=(f"{team}/{name}-acc",)),
            runtime("raw-acc", "team-a"),
            claim(name, team),
            *(data_set(f"{name}-{n}", name, team) for n in range(self.others.jobs)),
        )
        found.pods += [
            DataUser("team-a", "bert-worker-0", "raw-acc", "gpu-1"),
            DataUser(team, f"{MARK}-pod", name, "gpu-1"),
        ]
        return found

    async def read(self, namespace: str = "") -> FoundData:
        return await (await self._still()).read(namespace)

    async def reasons(self, found: FoundData) -> DataReasons:
        return DataReasons(controllers=(), users=tuple((await self._still()).pods))

    async def details(self, namespace: str, name: str) -> DataSetFacts:
        return await (await self._still()).details(namespace, name)

    async def users(self, namespace: str) -> list[DataUser]:
        return await (await self._still()).users(namespace)

    async def facts(self, namespace: str, claim: str, name: str) -> AccelerationFacts:
        return await (await self._still()).facts(namespace, claim, name)

    async def leftovers(self, namespace: str, name: str) -> tuple[ObjectRef, ...]:
        return ()

    async def has_secret(self, namespace: str, name: str) -> bool | None:
        return None


def world(others: Others) -> Ports:
    return replace(
        still_world(snapshot(others)),
        servings=TenantsServings(others),
        data=TenantsData(others),
        job_files=TenantsFiles(others),
    )
