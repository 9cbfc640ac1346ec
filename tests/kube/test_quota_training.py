"""Training jobs under their real operators, with quota: they are admitted, suspended and resumed as
a whole, and no worker is ever evicted.

In MPIJob v2 an evicted worker fails the job for good; so does an evicted Master in a PyTorchJob.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.crds import install_more_job_kinds
from tests.kube.operators import running_operators
from tests.kube.quota_line import (
    QuotaController,
    big_node,
    bounded,
    deployment,
    install,
    running_controller,
    settled,
)
from tests.kube.quota_truth import QuotaTruth
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(4, 3)

Object = dict[str, Any]
PLACES = ("lender", "owner")
ROOT = bounded(
    "root",
    40,
    40,
    children=[bounded("lender", 10, 40, ["lender"]), bounded("owner", 30, 40, ["owner"])],
)
KINDS = ("mpijob", "pytorchjob")
CONTAINERS = {"mpijob": "main", "pytorchjob": "pytorch", "tfjob": "tensorflow"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        install(made)
        made.admin.create([big_node("only", 56)])
        install_more_job_kinds(made.admin)
        with running_operators(made):
            yield made


@pytest.fixture(scope="module")
def controller(cluster: ControlPlane) -> Iterator[QuotaController]:
    with running_controller(cluster, ROOT) as made:
        yield made


def role(replicas: int, cpu: str) -> Object:
    container = {"image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "replicas": replicas,
        "restartPolicy": "Never",
        "template": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}},
    }


def training_job(kind: str) -> Object:
    """A job of five pods and 24 cpu, 14 more than its leaf is guaranteed."""
    metadata = {"name": "train", "namespace": "lender"}
    if kind == "mpijob":
        roles = {"Launcher": role(1, "4"), "Worker": role(4, "5")}
        spec: Object = {
            "slotsPerWorker": 1,
            "runPolicy": {"cleanPodPolicy": "Running"},
            "mpiReplicaSpecs": roles,
        }
        version, named = "kubeflow.org/v2beta1", "MPIJob"
    elif kind == "tfjob":
        roles = {"Chief": role(1, "4"), "Worker": role(4, "5")}
        spec = {"runPolicy": {"cleanPodPolicy": "None"}, "tfReplicaSpecs": roles}
        version, named = "kubeflow.org/v1", "TFJob"
    else:
        roles = {"Master": role(1, "4"), "Worker": role(4, "5")}
        spec = {"runPolicy": {"cleanPodPolicy": "None"}, "pytorchReplicaSpecs": roles}
        version, named = "kubeflow.org/v1", "PyTorchJob"
    for each in roles.values():
        each["template"]["spec"]["containers"][0]["name"] = CONTAINERS[kind]
    return {"apiVersion": version, "kind": named, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_job_is_suspended_and_resumed_and_never_loses_a_worker(
    cluster: ControlPlane, controller: QuotaController, kind: str
) -> None:
    truth = QuotaTruth(cluster, ROOT)
    try:
        cluster.admin.create([training_job(kind)])
        settled(truth, {"lender": 5})
        cluster.admin.create([deployment("back", "owner", 4, "5")])
        settled(truth, {"owner": 4}, seconds=90)
        suspended = the_job(cluster, kind)
        assert suspended["spec"]["runPolicy"]["suspend"] is True
        assert suspended["metadata"]["annotations"]["fairlead.io/suspended-for"].startswith(
            "owner/"
        )
        assert len(truth.stopped) == 5
        cluster.admin.run("delete", "deployment", "back", "-n", "owner")
        settled(truth, {"lender": 5}, seconds=90)
        resumed = the_job(cluster, kind)
        assert resumed["spec"]["runPolicy"]["suspend"] is False
        assert "fairlead.io/suspended-for" not in resumed["metadata"].get("annotations", {})
        wait_until("it runs", lambda: "Running" in true_conditions(cluster, kind), 60)
        assert "Failed" not in true_conditions(cluster, kind)
        assert truth.evicted == {}
        assert truth.faults == []
    finally:
        truth.stop()
        cluster.admin.run("delete", kind, "train", "-n", "lender", "--ignore-not-found", "--wait")
        for place in PLACES:
            cluster.admin.run("delete", "deployments", "--all", "-n", place)
            cluster.admin.run(
                "delete",
                "pods",
                "--all",
                "-n",
                place,
                "--force",
                "--grace-period=0",
                "--wait",
                seconds=60,
            )


def batch_job(name: str, pods: int, **more: Any) -> Object:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "5"}}}
    template = {
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        }
    }
    spec = {"parallelism": pods, "completions": 20, "backoffLimit": 0, "template": template, **more}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "lender"},
        "spec": spec,
    }


@pytest.fixture
def truth(cluster: ControlPlane, controller: QuotaController) -> Iterator[QuotaTruth]:
    made = QuotaTruth(cluster, ROOT)
    try:
        yield made
    finally:
        made.stop()
        for place in PLACES:
            cluster.admin.run("delete", "jobs,deployments", "--all", "-n", place, "--wait")
            cluster.admin.run(
                "delete",
                "pods",
                "--all",
                "-n",
                place,
                "--force",
                "--grace-period=0",
                "--wait",
                seconds=60,
            )


def sweep(cluster: ControlPlane) -> Object:
    return next(
        each
        for each in cluster.admin.get("jobs.batch", "-n", "lender")
        if each["metadata"]["name"] == "sweep"
    )


def test_of_a_batch_job_as_many_pods_go_as_are_needed_and_none_counts_as_failed(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    """Its `backoffLimit` is 0: one pod that counts as failed would end it. Two of its ten pods wait
    for quota the whole time.
    """
    cluster.admin.create([batch_job("sweep", 10)])
    settled(truth, {"lender": 8})
    cluster.admin.create([deployment("back", "owner", 2, "5")])
    settled(truth, {"owner": 2, "lender": 6}, seconds=90)
    lowered = sweep(cluster)
    assert lowered["spec"]["parallelism"] == 6 and not lowered["spec"]["suspend"]
    marks = {"fairlead.io/parallelism": "10", "fairlead.io/lowered-parallelism": "6"}
    assert lowered["metadata"]["annotations"].items() >= marks.items()
    assert (len(truth.stopped), truth.evicted) == (2, {})
    cluster.admin.run("scale", "deployment", "back", "-n", "owner", "--replicas=1")
    settled(truth, {"owner": 1, "lender": 7}, seconds=90)
    assert sweep(cluster)["spec"]["parallelism"] == 7
    cluster.admin.run(
        "patch", "job", "sweep", "-n", "lender", "--type=merge", "-p", '{"spec":{"parallelism":3}}'
    )
    settled(truth, {"owner": 1, "lender": 3}, seconds=90)
    wait_until(
        "the owner's edit wins",
        lambda: not marks.keys() & sweep(cluster)["metadata"].get("annotations", {}).keys(),
        30,
    )
    cluster.admin.run("delete", "deployment", "back", "-n", "owner")
    settled(truth, {"lender": 3}, seconds=90)
    end = sweep(cluster)
    assert end["spec"]["parallelism"] == 3
    assert "failed" not in end["status"] and truth.faults == [] and truth.evicted == {}


def test_a_batch_job_that_its_owner_suspends_again_stays_suspended(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    def edit(suspend: str) -> None:
        cluster.admin.run(
            "patch",
            "job",
            "sweep",
            "-n",
            "lender",
            "--type=merge",
            "-p",
            f'{{"spec":{{"suspend":{suspend}}}}}',
        )

    cluster.admin.create([deployment("older", "lender", 2, "5")])
    settled(truth, {"lender": 2})
    cluster.admin.create([batch_job("sweep", 6)])
    settled(truth, {"lender": 8})
    cluster.admin.create([deployment("back", "owner", 6, "5")])
    settled(truth, {"owner": 6, "lender": 2}, seconds=90)
    assert sweep(cluster)["spec"]["suspend"] is True
    edit("false")
    edit("true")
    wait_until(
        "no mark of Fairlead is left",
        lambda: (
            "fairlead.io/suspended-for" not in sweep(cluster)["metadata"].get("annotations", {})
        ),
        30,
    )
    cluster.admin.run("delete", "deployment", "--all", "-n", "owner")
    settled(truth, {"lender": 2}, seconds=90)
    assert sweep(cluster)["spec"]["suspend"] is True and "failed" not in sweep(cluster)["status"]
    assert truth.faults == [] and truth.evicted == {}


def test_a_job_with_a_deadline_does_not_die_while_it_waits(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    """Its 25 seconds begin when it is admitted: it has waited longer than that by then. KWOK's pods
    never end, so its deadline ends it.
    """
    cluster.admin.create(
        [deployment("back", "owner", 6, "5"), deployment("older", "lender", 2, "5")]
    )
    settled(truth, {"owner": 6, "lender": 2}, seconds=90)
    cluster.admin.create([batch_job("sweep", 2, activeDeadlineSeconds=25)])
    made = sweep(cluster)
    assert (
        made["spec"]["suspend"] is True
        and made["metadata"]["annotations"]["fairlead.io/suspended-for"] == "first-admission"
    )
    began = time.monotonic()
    wait_until("more time than its deadline has gone by", lambda: time.monotonic() > began + 27, 60)
    assert not sweep(cluster)["status"].get("startTime")
    cluster.admin.run("scale", "deployment", "back", "-n", "owner", "--replicas=5")
    settled(truth, {"owner": 5, "lender": 3}, seconds=90)
    running = sweep(cluster)
    assert (running["spec"]["suspend"], running["spec"]["parallelism"]) == (False, 1)
    assert "failed" not in running["status"] and truth.faults == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_member_beyond_the_least_of_a_training_job_is_evicted(
    cluster: ControlPlane, truth: QuotaTruth, kind: str
) -> None:
    """The job needs three of its five pods, and one worker would be enough for the claim. The whole
    job is suspended, and no pod is evicted.
    """
    elastic = training_job(kind)
    elastic["spec"]["runPolicy"]["schedulingPolicy"] = {"minAvailable": 3}
    elastic["metadata"]["name"] = "elastic"
    try:
        cluster.admin.create([elastic])
        settled(truth, {"lender": 5})
        cluster.admin.create([deployment("back", "owner", 4, "5")])
        settled(truth, {"owner": 4}, seconds=90)
        assert the_job(cluster, kind)["spec"]["runPolicy"]["suspend"] is True
        cluster.admin.run("delete", "deployment", "back", "-n", "owner")
        settled(truth, {"lender": 5}, seconds=90)
        assert "Failed" not in true_conditions(cluster, kind)
        assert truth.evicted == {} and truth.faults == []
    finally:
        cluster.admin.run("delete", kind, "elastic", "-n", "lender", "--ignore-not-found", "--wait")


@pytest.mark.parametrize(
    ("kind", "deadline", "waits"), [("mpijob", 600, 0), ("pytorchjob", 600, 0), ("tfjob", 30, 32)]
)
def test_a_training_job_with_a_deadline_begins_suspended_and_runs_when_it_is_admitted(
    cluster: ControlPlane, truth: QuotaTruth, kind: str, deadline: int, waits: int
) -> None:
    """The TFJob waits for longer than its deadline, and runs all the same."""
    late = training_job(kind)
    late["spec"]["runPolicy"]["activeDeadlineSeconds"] = deadline
    try:
        cluster.admin.create([deployment("back", "owner", 6, "5")])
        settled(truth, {"owner": 6}, seconds=90)
        cluster.admin.create([late])
        made = the_job(cluster, kind)
        assert made["spec"]["runPolicy"]["suspend"] is True
        assert made["metadata"]["annotations"]["fairlead.io/suspended-for"] == "first-admission"
        began = time.monotonic()
        wait_until("it has waited", lambda: time.monotonic() > began + waits, waits + 60)
        assert "Failed" not in true_conditions(cluster, kind)
        cluster.admin.run("delete", "deployment", "back", "-n", "owner")
        settled(truth, {"lender": 5}, seconds=90)
        running = the_job(cluster, kind)
        assert "Failed" not in true_conditions(cluster, kind)
        assert running["spec"]["runPolicy"]["suspend"] is False
        assert "fairlead.io/suspended-for" not in running["metadata"].get("annotations", {})
        assert truth.evicted == {} and truth.faults == []
    finally:
        cluster.admin.run("delete", kind, "train", "-n", "lender", "--ignore-not-found", "--wait")


def test_a_ray_job_with_a_deadline_begins_suspended_and_is_resumed_when_it_is_admitted(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    """No kuberay-operator runs here, so no pod is created. `keeps` is not suspended:
    kuberay-operator refuses to suspend such a RayJob.
    """
    pods = {"template": {"spec": batch_job("", 1)["spec"]["template"]["spec"]}}
    ray = {
        "headGroupSpec": pods,
        "workerGroupSpecs": [
            {"groupName": "w", "replicas": 2, "minReplicas": 2, "maxReplicas": 2, **pods}
        ],
    }
    spec = {"entrypoint": "python x.py", "rayClusterSpec": ray, "activeDeadlineSeconds": 600}
    jobs = {"late": {**spec, "shutdownAfterJobFinishes": True}, "keeps": spec}

    def job(name: str) -> Object:
        return next(
            each
            for each in cluster.admin.get("rayjobs.ray.io", "-n", "lender")
            if each["metadata"]["name"] == name
        )

    try:
        cluster.admin.create([deployment("back", "owner", 6, "5")])
        settled(truth, {"owner": 6}, seconds=90)
        cluster.admin.create(
            [
                {
                    "apiVersion": "ray.io/v1",
                    "kind": "RayJob",
                    "metadata": {"name": name, "namespace": "lender"},
                    "spec": each,
                }
                for name, each in jobs.items()
            ]
        )
        assert job("late")["spec"]["suspend"] is True
        assert (
            job("late")["metadata"]["annotations"]["fairlead.io/suspended-for"] == "first-admission"
        )
        assert not job("keeps")["spec"].get("suspend")
        cluster.admin.run("delete", "deployment", "back", "-n", "owner")
        wait_until("it is resumed", lambda: not job("late")["spec"]["suspend"], 60)
        assert truth.evicted == {} and truth.faults == []
    finally:
        cluster.admin.run("delete", "rayjobs", "--all", "-n", "lender", "--wait")


def test_pods_of_a_job_that_no_node_takes_are_not_counted_as_failed(
    cluster: ControlPlane, truth: QuotaTruth
) -> None:
    """The pods request a node that does not exist. The job's `backoffLimit` is 0, and its pods are
    returned after two seconds.
    """
    tree = cluster.admin.get("elasticquotatrees.scheduling.sigs.k8s.io", "-n", "kube-system")[0]
    attributes = dict(tree["spec"]["root"].get("attributes") or {})
    place = ["patch", "eqtree", "elasticquotatree", "-n", "kube-system", "--type=merge", "-p"]
    cluster.admin.run(
        *place,
        json.dumps(
            {"spec": {"root": {"attributes": {**attributes, "fairlead.io/unbound-return": "2s"}}}}
        ),
    )
    try:
        homeless = batch_job("sweep", 2)
        homeless["spec"]["template"]["spec"]["volumes"] = [
            {"name": "v", "persistentVolumeClaim": {"claimName": "not-there"}}
        ]
        cluster.admin.create([homeless])
        wait_until("it was returned twice", lambda: len(returns(cluster)) >= 2, 90)
        assert "failed" not in sweep(cluster)["status"]
        assert not [
            each
            for each in sweep(cluster)["status"].get("conditions", ())
            if each["type"] == "Failed"
        ]
    finally:
        cluster.admin.run(
            *place,
            json.dumps({"spec": {"root": {"attributes": {"fairlead.io/unbound-return": None}}}}),
        )


def returns(cluster: ControlPlane) -> list[Object]:
    events = cluster.admin.get("events", "-n", "lender")
    return [
        each
        for each in events
        if each["reason"] == "QuotaReturned" and each["involvedObject"]["kind"] == "Job"
    ]


def the_job(cluster: ControlPlane, kind: str) -> Object:
    (found,) = cluster.admin.get(f"{kind}s.kubeflow.org", "-n", "lender")
    return found


def true_conditions(cluster: ControlPlane, kind: str) -> set[str]:
    conditions = the_job(cluster, kind).get("status", {}).get("conditions", [])
    return {each["type"] for each in conditions if each["status"] == "True"}
