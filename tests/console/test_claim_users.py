"""The jobs and pods that mount claims: seen now and then, and the same value until they change."""

from __future__ import annotations

from typing import Any

from tests.console.clusters import cluster

from fairlead.console.http.data.claim_users import AGAIN_SECONDS, MountedClaims
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Owner, Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.data.mounted import ClaimUsers


class Cluster:
    """Of which a test decides what there is."""

    def __init__(self) -> None:
        self.is_ready = False
        self.taken = cluster()
        self.looks = 0

    def snapshot(self) -> ClusterSnapshot:
        self.looks += 1
        return self.taken


def titles(found: ClaimUsers) -> dict[tuple[str, str], list[str]]:
    return {claim: [each.title for each in users] for claim, users in found.by_claim.items()}


def test_users_are_known_when_pods_are_and_change_with_them_alone() -> None:
    now, source = 0.0, Cluster()
    known: Any = source
    claims = MountedClaims(known, lambda: now)
    assert claims.now() is None and source.looks == 0
    source.is_ready = True
    source.taken = cluster(pods=[Pod("a", "one", claims=("raw",))])
    first = claims.now()
    assert first is not None and titles(first) == {("a", "raw"): ["one"]}

    source.taken = cluster(pods=[Pod("a", "one", claims=("raw",)), Pod("a", "other")])
    now = AGAIN_SECONDS - 0.1
    assert claims.now() is first and source.looks == 1
    now = AGAIN_SECONDS
    assert claims.now() is first and source.looks == 2
    source.taken = cluster(pods=[Pod("a", "two", claims=("raw", "logs"))])
    now = 2 * AGAIN_SECONDS
    last = claims.now()
    assert last is not None
    assert titles(last) == {("a", "raw"): ["two"], ("a", "logs"): ["two"]}


def test_pods_of_a_job_are_one_user_and_other_owners_are_named() -> None:
    job = Job("mpijob", "MPIJob", "kubeflow.org/v1alpha1", "a", "bert", "u")
    owners = {
        "bert-worker-0": Owner("MPIJob", "bert", "u", controller=True),
        "bert-worker-1": Owner("MPIJob", "bert", "u", controller=True),
        "web-5d-x": Owner("ReplicaSet", "web-5d", "r", controller=True),
        "reader": None,
    }
    pods = [
        Pod(
            "a",
            name,
            claims=("raw",),
            owners=(owner,) if owner else (),
            labels={"pod-template-hash": "5d"} if name.startswith("web") else {},
        )
        for name, owner in owners.items()
    ]
    source = Cluster()
    source.is_ready, source.taken = True, cluster(pods=pods, jobs=[job])
    known: Any = source
    found = MountedClaims(known).now()
    assert found is not None
    assert titles(found) == {("a", "raw"): ["Deployment/web", "MPIJob/bert", "reader"]}
    assert found.by_pod["a/bert-worker-1"].job == "mpijob/bert"
