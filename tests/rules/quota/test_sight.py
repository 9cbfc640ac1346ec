"""What quota reads from pods and their owners, as real API servers and operators write them.

See docs/spec/quota.md#pods-that-are-counted, docs/spec/quota.md#units-and-gangs,
docs/spec/quota.md#preemption-inside-a-leaf, docs/spec/quota.md#victims, docs/spec/quota.md#claims,
docs/spec/quota.md#non-preemptible-pods-and-caps.
"""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rules.quota.sights import (
    condition,
    counted,
    gated,
    meta,
    pod,
    read_budget,
    read_pod,
    read_workload,
    seen,
    template,
    workload,
)

from fairlead.model.quota.plan import Reason
from fairlead.rules.quota.jobs.removal import surplus_in, surplus_of
from fairlead.rules.quota.sight import PodContext, quota_pod

GIB = 1 << 30
DEPLOYMENT = workload(
    "apps/v1", "Deployment", "web", labels={"arena.kubeflow.org/console-user": "bob"}
)
NEWER = workload(
    "apps/v1",
    "ReplicaSet",
    "web-2",
    owner=DEPLOYMENT,
    annotations={"deployment.kubernetes.io/revision": "2"},
)


def mpi_job(version: str = "v2beta1", workers: int = 3, **spec: Any) -> dict[str, Any]:
    replicas = {
        "Launcher": {"replicas": 1, "template": template("500m")},
        "Worker": {"replicas": workers, "template": template("4")},
    }
    return workload(
        f"kubeflow.org/{version}", "MPIJob", "train", {"mpiReplicaSpecs": replicas, **spec}
    )


# --- which pods are counted -----------------------------------------------------------------------


def test_a_pod_counts_from_its_admission_until_its_object_is_gone() -> None:
    waiting, running = counted(gated()), counted(pod())
    assert (waiting.is_admitted, running.is_admitted, running.is_ready, running.node) == (
        False,
        True,
        True,
        "n1",
    )
    going = counted(pod(deletionTimestamp="2026-01-05T09:00:00Z"))
    assert (going.is_admitted, going.is_stopping, going.stopping_at) == (True, True, 1767603600.0)
    for phase in ("Succeeded", "Failed"):
        assert seen(pod(status={"phase": phase})) is None, (
            "a finished pod costs nothing, held by finalizers or not"
        )


def test_a_pod_that_goes_without_having_been_admitted_neither_waits_nor_costs() -> None:
    assert seen(gated(deletionTimestamp="2026-01-05T09:00:00Z")) is None


MIRROR = {"kubernetes.io/config.mirror": "x"}


def owned(kind: str, version: str, name: str = "x") -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "uid": f"u{name}"}}


@pytest.mark.parametrize(("kind", "version"), [("Node", "v1"), ("DaemonSet", "apps/v1")])
def test_kubelets_and_daemon_sets_pods_are_exempt_and_a_forged_owner_exempts_no_pod(
    kind: str, version: str
) -> None:
    owner = owned(kind, version)
    assert seen(pod(owner=owner, annotations=MIRROR)) is None
    marked = pod(owner=owner, annotations=MIRROR, labels={"fairlead.io/managed": "true"})
    assert seen(marked) is not None, "admission marks what is not exempt"
    unmarked = gated(owner=owner, annotations=MIRROR)
    del unmarked["metadata"]["labels"]
    assert seen(unmarked) is not None, "nor is what has our gate"


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("DaemonSet", "evil.example/v1"),
        ("DaemonSet", "v1"),
        ("Node", "evil.example/v1"),
        ("Node", "v1"),
    ],
)
def test_an_owner_that_no_collector_misses_exempts_no_pod_from_before_admission(
    kind: str, version: str
) -> None:
    """The kind is not served, so the garbage collector does not find the owner missing. The pod has
    a node, but is not a kubelet's mirror pod.
    """
    assert seen(pod(owner=owned(kind, version))) is not None


def test_the_leaf_that_a_label_names_plays_no_part() -> None:
    assert counted(pod(labels={"quota.scheduling.alibabacloud.com/name": "elsewhere"})) == counted(
        pod()
    )


# --- what a pod requests --------------------------------------------------------------------------


def test_a_request_is_the_peak_of_all_containers_and_overhead_of_every_resource() -> None:
    """Worked by hand: sidecar 1 + app 2 = 3; init 4 beside the sidecar = 5; overhead 0.25."""
    spec = {
        "containers": [
            {
                "name": "a",
                "resources": {
                    "requests": {"cpu": "2", "memory": "1Gi"},
                    "limits": {"nvidia.com/gpu": "1"},
                },
            }
        ],
        "initContainers": [
            {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
            {"name": "i", "resources": {"requests": {"cpu": "4"}}},
        ],
        "overhead": {"cpu": "250m"},
    }
    assert counted(pod(spec=spec)).request == {"cpu": 5250, "memory": GIB, "nvidia.com/gpu": 1}


def test_resources_of_the_whole_pod_count_in_the_place_of_its_containers() -> None:
    spec = {
        "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "2"}},
        "overhead": {"cpu": "100m"},
    }
    whole = pod(cpu="3", spec=spec)
    whole["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Gi"
    assert counted(whole).request == {"cpu": 600, "memory": GIB}


@pytest.mark.parametrize(("given", "cpu"), [("3", 3000), ("1", 2000), ("2", 2000)])
def test_while_a_pod_is_resized_the_larger_of_wish_and_gift_counts(given: str, cpu: int) -> None:
    status = {
        "containerStatuses": [
            {
                "name": "main",
                "allocatedResources": {"cpu": given},
                "resources": {"requests": {"cpu": given}},
            }
        ]
    }
    assert counted(pod(cpu="2", status=status)).request == {"cpu": cpu}


def test_grace_and_the_nodes_that_it_may_use_are_known_of_a_waiting_pod() -> None:
    found = counted(
        gated(spec={"terminationGracePeriodSeconds": 30, "nodeSelector": {"pool": "a"}})
    )
    assert (found.grace_seconds, found.choice.selector) == (30, (("pool", "a"),))


@pytest.mark.parametrize(
    ("more", "units"),
    [
        ({}, 8),
        ({"labels": {"aliyun.com/gpu-count": "2"}}, 4),
        ({"annotations": {"fairlead.io/gpu-split": "per-container"}}, 6),
    ],
)
def test_gpu_memory_is_asked_of_one_card_unless_the_pod_splits_it(
    more: dict[str, Any], units: int
) -> None:
    parts = [
        {"name": name, "resources": {"limits": {"aliyun.com/gpu-mem": amount}}}
        for name, amount in (("a", "6"), ("b", "2"))
    ]
    found = counted(gated(spec={"containers": parts}, **more))
    assert (found.request, found.card_units) == ({"aliyun.com/gpu-mem": 8}, units)


# --- which leaf, owner and user a pod belongs to --------------------------------------------------


def test_a_deployments_pod_knows_deployment_revision_and_user() -> None:
    found = counted(pod(owner=NEWER), [DEPLOYMENT, NEWER])
    assert (found.owner, found.deployment, found.revision, found.user) == (
        "uid-web",
        "uid-web",
        2,
        "bob",
    )


def test_the_deployment_is_the_owner_even_where_deployments_may_not_be_read() -> None:
    found = counted(pod(owner=NEWER, labels={"arena.kubeflow.org/console-user": "eve"}), [NEWER])
    assert (found.owner, found.deployment, found.revision, found.user) == (
        "uid-web",
        "uid-web",
        2,
        "eve",
    )


def test_the_owners_stamp_counts_not_what_a_template_puts_on_its_pods() -> None:
    assert (
        counted(
            pod(owner=NEWER, labels={"arena.kubeflow.org/console-user": "eve"}), [DEPLOYMENT, NEWER]
        ).user
        == "bob"
    )
    assert counted(pod(labels={"arena.kubeflow.org/console-user": "eve"})).user == "eve", (
        "a bare pod's own stamp"
    )


def test_a_launcher_belongs_to_its_mpi_job_not_to_the_job_between() -> None:
    job = mpi_job()
    between = workload("batch/v1", "Job", "train-launcher", {"template": template()}, owner=job)
    assert counted(pod(owner=between), [between, job]).owner == "uid-train"
    oldest = workload(
        "kubeflow.org/v1alpha1", "MPIJob", "train", {"replicas": 2, "template": template()}
    )
    between = workload("batch/v1", "Job", "train-launcher", {"template": template()}, owner=oldest)
    assert counted(pod(owner=between), [between, oldest]).owner == "uid-train", (
        "also of the form that cannot be suspended"
    )


def test_what_a_schedule_makes_is_a_job_of_its_own_and_its_user_the_schedules() -> None:
    cron = workload(
        "batch/v1", "CronJob", "nightly", labels={"arena.kubeflow.org/console-user": "bob"}
    )
    job = workload("batch/v1", "Job", "nightly-1", {"template": template()}, owner=cron)
    for known in ([job], [job, cron]):
        assert counted(pod(owner=job), known).owner == "uid-nightly-1"
    assert counted(pod(owner=job), [job, cron]).user == "bob"


def test_a_job_below_an_unknown_owner_stands_for_itself() -> None:
    flow = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "flow", "uid": "uf"},
    }
    job = workload("batch/v1", "Job", "step", {"template": template()}, owner=flow)
    assert counted(pod(owner=job), [job]).owner == "uid-step", "it can be suspended"


def test_a_ray_job_that_a_workflow_made_stands_for_itself_also_where_it_cannot_be_suspended() -> (
    None
):
    flow = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "flow", "uid": "uf"},
    }
    spec = {"rayClusterSpec": {"headGroupSpec": {"template": template()}}}
    for name, more in (("keeps", {}), ("goes", {"shutdownAfterJobFinishes": True})):
        ray = workload("ray.io/v1", "RayJob", name, {**spec, **more}, owner=flow)
        cluster = workload("ray.io/v1", "RayCluster", f"{name}-x", owner=ray)
        assert counted(pod(owner=cluster), [cluster, ray]).owner == f"uid-{name}"


def test_a_ray_workers_owner_is_the_ray_job_above_its_cluster() -> None:
    ray = workload(
        "ray.io/v1",
        "RayJob",
        "ray",
        {"rayClusterSpec": {"headGroupSpec": {"template": template()}}},
    )
    cluster = workload("ray.io/v1", "RayCluster", "ray-x", owner=ray)
    assert counted(pod(owner=cluster), [cluster, ray]).owner == "uid-ray"


def test_owners_in_a_circle_end_somewhere() -> None:
    one, two = (workload("apps/v1", "StatefulSet", name) for name in ("one", "two"))
    one["metadata"], two["metadata"] = meta("one", owner=two), meta("two", owner=one)
    assert counted(pod(owner=one), [one, two]).owner in ("uid-one", "uid-two")


# --- gangs ----------------------------------------------------------------------------------------

LABELLED = {
    "pod-group.scheduling.sigs.k8s.io/name": "g",
    "pod-group.scheduling.sigs.k8s.io/min-available": "4",
}


@pytest.mark.parametrize(
    ("more", "gang"),
    [
        ({"labels": LABELLED}, ("g", 4)),
        (
            {"labels": {**LABELLED, "pod-group.scheduling.sigs.k8s.io/min-available": "many"}},
            ("", 0),
        ),
        ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, ("g", 3)),
        ({"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}}, ("g", 3)),
        ({"annotations": {"scheduling.k8s.io/group-name": "g"}}, ("g", 5)),
        (
            {
                "annotations": {
                    "gang.scheduling.koordinator.sh/name": "g",
                    "gang.scheduling.koordinator.sh/min-available": "2",
                }
            },
            ("g", 2),
        ),
        ({"labels": {"scheduling.x-k8s.io/pod-group": "nobody"}}, ("", 0)),
    ],
)
def test_every_form_of_a_gang_is_known(more: dict[str, Any], gang: tuple[str, int]) -> None:
    plugins = workload("scheduling.x-k8s.io/v1alpha1", "PodGroup", "g", {"minMember": 3})
    volcano = workload("scheduling.volcano.sh/v1beta1", "PodGroup", "g", {"minMember": 5})
    volcano["metadata"]["uid"] = "uid-volcano"
    found = counted(gated(**more), [plugins, volcano])
    assert (found.gang, found.gang_size) == gang


def test_a_training_job_is_one_gang_whatever_labels_some_of_its_pods_have() -> None:
    """`arena submit mpijob --gang` labels the workers, but not the launcher."""
    job = mpi_job()
    between = workload("batch/v1", "Job", "train-launcher", {"template": template()}, owner=job)
    worker, launcher = (
        counted(gated(owner=job, labels={**LABELLED}), [job]),
        counted(gated(owner=between), [between, job]),
    )
    assert (
        (worker.gang, worker.gang_size)
        == (launcher.gang, launcher.gang_size)
        == ("mpijob/train", 4)
    )


@pytest.mark.parametrize(
    ("spec", "least", "late", "late_pods"),
    [
        ({}, 4, {}, 0),
        ({"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}, 2, {}, 0),
        ({"runPolicy": {"schedulingPolicy": {"minAvailable": 9}}}, 4, {}, 0),
        ({"launcherCreationPolicy": "WaitForWorkersReady"}, 3, {"cpu": 500}, 1),
        ({"launcherCreationPolicy": "AtStartup"}, 4, {}, 0),
    ],
)
def test_a_launcher_that_comes_late_is_not_waited_for_and_its_request_is_known(
    spec: dict[str, Any], least: int, late: dict[str, int], late_pods: int
) -> None:
    found = read_workload(mpi_job(**spec))
    assert (found.pods, found.request, found.least, found.late, found.late_pods) == (
        4,
        {"cpu": 12500},
        least,
        late,
        late_pods,
    )


def test_a_ray_jobs_submitter_comes_late() -> None:
    """kuberay-operator creates it when the cluster runs, with 500m and 200Mi by default."""
    group = {"groupName": "w", "replicas": 2, "template": template("3")}
    cluster = {"headGroupSpec": {"template": template("2")}, "workerGroupSpecs": [group]}
    found = read_workload(workload("ray.io/v1", "RayJob", "ray", {"rayClusterSpec": cluster}))
    assert (found.pods, found.least, found.late, found.late_pods) == (
        4,
        3,
        {"cpu": 500, "memory": 200 << 20},
        1,
    )
    assert found.request == {"cpu": 8500, "memory": 200 << 20}
    reported = read_workload(
        workload(
            "ray.io/v1",
            "RayJob",
            "ray",
            {"rayClusterSpec": cluster, "submitterPodTemplate": template("1")},
        )
    )
    assert reported.late == {"cpu": 1000}
    none = read_workload(
        workload(
            "ray.io/v1", "RayJob", "ray", {"rayClusterSpec": cluster, "submissionMode": "HTTPMode"}
        )
    )
    assert (none.pods, none.late_pods) == (3, 0)


# --- jobs that are suspended ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "status", "pods"),
    [
        ({}, {}, 1),
        ({"parallelism": 3}, {}, 3),
        ({"parallelism": 3, "completions": 5}, {"succeeded": 4}, 1),
        ({"parallelism": 0}, {}, 0),
        ({"parallelism": 2, "completions": 2}, {"succeeded": 2}, 0),
    ],
)
def test_a_job_brings_what_may_run_at_once_and_is_missing(
    spec: dict[str, Any], status: dict[str, Any], pods: int
) -> None:
    body = {**spec, "suspend": True, "template": template("2")}
    found = read_workload(
        workload(
            "batch/v1", "Job", "j", body, status, annotations={"fairlead.io/suspended-for": "ns/p"}
        )
    )
    assert (found.pods, found.request, found.least) == (
        pods,
        {"cpu": 2000 * pods} if pods else {},
        0,
    )
    assert (found.can_suspend, found.is_suspended, found.suspended_for) == (True, True, "ns/p")


LOWERED = {"fairlead.io/parallelism": "4", "fairlead.io/lowered-parallelism": "2"}


@pytest.mark.parametrize(
    ("spec", "status", "notes", "pods", "held", "own"),
    [
        ({"parallelism": 2}, {}, LOWERED, 2, 2, 4),
        ({"parallelism": 2, "completions": 9}, {"succeeded": 6}, LOWERED, 2, 1, 4),
        (
            {"parallelism": 2, "completions": 9},
            {"succeeded": 6, "uncountedTerminatedPods": {"succeeded": ["u"]}},
            LOWERED,
            2,
            0,
            4,
        ),
        ({"parallelism": 3}, {}, LOWERED, 3, 0, 0),
        ({"parallelism": 2}, {}, {**LOWERED, "fairlead.io/parallelism": "forged"}, 2, 0, 0),
        ({"parallelism": 2}, {}, {}, 2, 0, 0),
    ],
)
def test_what_a_lowered_job_lacks(
    spec: dict[str, Any],
    status: dict[str, Any],
    notes: dict[str, str],
    pods: int,
    held: int,
    own: int,
) -> None:
    """Once the owner has written another number, the recorded one is void."""
    body = {**spec, "template": template("2")}
    found = read_workload(workload("batch/v1", "Job", "j", body, status, annotations=notes))
    assert (found.pods, found.held, found.own_parallelism, found.each) == (
        pods,
        held,
        own,
        {"cpu": 2000},
    )
    assert found.gives_singly and bool(found.stale) == (bool(notes) and not own)


def test_indexes_that_run_all_at_once_are_a_gang_and_others_are_not() -> None:
    """An index that failed for good gets no new pod, so the gang is smaller."""
    body = {
        "completionMode": "Indexed",
        "completions": 5,
        "backoffLimitPerIndex": 0,
        "template": template("2"),
    }
    for parallelism, least in ((5, 2), (7, 2), (4, 0)):
        status = {"succeeded": 1, "failedIndexes": "0,3"}
        found = read_workload(
            workload("batch/v1", "Job", "j", {**body, "parallelism": parallelism}, status)
        )
        assert (found.least, found.gives_singly) == (least, not least)
    labelled = {
        "metadata": {"labels": {"pod-group.scheduling.sigs.k8s.io/name": "g"}},
        **template("2"),
    }
    gang = read_workload(workload("batch/v1", "Job", "j", {"parallelism": 4, "template": labelled}))
    assert (gang.is_gang, gang.can_lower, gang.gives_singly) == (True, True, False)


def test_a_work_queue_that_is_winding_down_gives_nothing_back() -> None:
    """Its controller starts no more pods once one has succeeded, so an evicted pod
    would be lost.
    """
    for succeeded, expected in ((0, (True, None)), (1, (False, False))):
        job = read_workload(
            workload(
                "batch/v1",
                "Job",
                "j",
                {"parallelism": 4, "template": template("2")},
                {"succeeded": succeeded},
            )
        )
        assert (job.can_lower, job.is_preemptible) == expected


def test_pods_that_the_controller_of_a_job_removes_are_stopping() -> None:
    """After a crash between the quota controller's call and the Job controller's: the Job is
    lowered, and all its pods still exist.
    """
    job = workload(
        "batch/v1",
        "Job",
        "j",
        {"parallelism": 1, "template": template("2")},
        annotations=LOWERED | {"fairlead.io/lowered-parallelism": "1"},
    )
    pods = [
        read_pod(pod(f"p{number}", owner=job, creationTimestamp=f"2026-01-05T08:0{number}:00Z"))
        for number in range(3)
    ]
    row = read_workload(job)
    assert [each.name for each in surplus_in(pods, row)] == ["p2", "p1"]
    assert surplus_in(pods, replace(row, is_suspended=True)) == []
    around = PodContext()
    around.put(row)
    around.surplus = surplus_of(pods, around.workloads)
    assert [found.is_stopping for each in pods if (found := quota_pod(each, around))] == [
        False,
        True,
        True,
    ]


def test_a_suspended_job_is_worth_what_its_pods_were() -> None:
    notes = {"fairlead.io/suspended-for": "ns/p", "fairlead.io/suspended-priority": "1000"}
    job = workload(
        "batch/v1", "Job", "j", {"suspend": True, "template": template("2")}, annotations=notes
    )
    assert read_workload(job).priority == 1000
    training = mpi_job()
    training["metadata"]["annotations"] = notes
    assert read_workload(training).priority == 1000
    training["metadata"]["annotations"] = {**notes, "fairlead.io/suspended-priority": "forged"}
    assert read_workload(training).priority == 0


@pytest.mark.parametrize("type_", ["Complete", "Failed"])
def test_a_job_that_ended_is_finished(type_: str) -> None:
    job = workload(
        "batch/v1",
        "Job",
        "j",
        {"template": template()},
        {"conditions": [{"type": type_, "status": "True"}]},
    )
    assert read_workload(job).is_finished
    assert not read_workload(
        workload(
            "batch/v1", "Job", "j", {}, {"conditions": [{"type": "Suspended", "status": "True"}]}
        )
    ).is_finished


@pytest.mark.parametrize(
    ("version", "can_suspend", "is_preemptible"),
    [
        ("v2beta1", True, None),
        ("v1", True, None),
        ("v1alpha2", False, False),
        ("v1alpha1", False, False),
    ],
)
def test_old_mpi_jobs_cannot_be_suspended_and_are_not_preemptible_without_a_label(
    version: str, can_suspend: bool, is_preemptible: bool | None
) -> None:
    job = (
        mpi_job(version)
        if version != "v1alpha1"
        else workload("kubeflow.org/v1alpha1", "MPIJob", "train", {"replicas": 2})
    )
    found = read_workload(job)
    assert (found.can_suspend, found.is_preemptible) == (can_suspend, is_preemptible)
    assert counted(pod(owner=job), [job]).is_preemptible is (is_preemptible is not False)
    job["metadata"]["labels"] = {"quota.scheduling.koordinator.sh/preemptible": "true"}
    assert counted(pod(owner=job), [job]).is_preemptible


@pytest.mark.parametrize(
    ("spec", "can_suspend"),
    [
        ({"shutdownAfterJobFinishes": True}, True),
        ({}, False),
        (
            {"shutdownAfterJobFinishes": True, "clusterSelector": {"ray.io/cluster": "shared"}},
            False,
        ),
    ],
)
def test_a_ray_job_that_its_operator_will_not_suspend_is_not_preemptible_without_a_label(
    spec: dict[str, Any], can_suspend: bool
) -> None:
    """kuberay-operator 1.4.2 (`ValidateRayJobSpec`) rejects such a job with `suspend: true`, and
    leaves its pods running.
    """
    job = workload(
        "ray.io/v1",
        "RayJob",
        "ray",
        {"rayClusterSpec": {"headGroupSpec": {"template": template()}}, **spec},
    )
    found = read_workload(job)
    assert (found.can_suspend, found.is_preemptible) == (
        can_suspend,
        None if can_suspend else False,
    )
    job["metadata"]["labels"] = {"quota.scheduling.koordinator.sh/preemptible": "true"}
    assert read_workload(job).is_preemptible


def test_a_ray_job_in_a_cluster_of_others_is_its_submitter_alone() -> None:
    job = workload("ray.io/v1", "RayJob", "ray", {"clusterSelector": {"ray.io/cluster": "shared"}})
    found = read_workload(job)
    assert (found.pods, found.least, found.late_pods) == (1, 0, 1)


def test_what_runs_of_a_training_job_that_is_not_seen_yet_is_no_victim() -> None:
    """Such pods may still borrow. A launcher is the pod of a Job, which is seen before the job that
    owns it.
    """
    job = mpi_job()
    assert [counted(pod(owner=job), known).is_preemptible for known in ([], [job])] == [False, True]
    assert counted(gated(owner=job), []).is_preemptible
    launcher = workload("batch/v1", "Job", "train-launcher", {"template": template()}, owner=job)
    assert [
        counted(pod(owner=launcher), known).is_preemptible
        for known in ([launcher], [launcher, job])
    ] == [False, True]
    assert counted(pod(owner=NEWER), []).is_preemptible


def test_the_launcher_of_the_oldest_mpi_job_comes_late() -> None:
    """The operator creates it when the workers are ready."""
    found = read_workload(
        workload(
            "kubeflow.org/v1alpha1", "MPIJob", "train", {"replicas": 2, "template": template("3")}
        )
    )
    assert (found.pods, found.least, found.late_pods, found.request) == (3, 2, 1, {"cpu": 6000})


@pytest.mark.parametrize(
    ("labels", "is_owned", "settings", "is_preemptible"),
    [
        ({}, True, {}, True),
        ({}, False, {}, False),
        ({}, False, {"are_bare_pods_preemptible": True}, True),
        ({"quota.scheduling.alibabacloud.com/preemptible": "true"}, False, {}, True),
        ({"quota.scheduling.alibabacloud.com/preemptible": "false"}, True, {}, False),
        ({"quota.scheduling.koordinator.sh/preemptible": "false"}, True, {}, False),
        ({"quota.scheduling.alibabacloud.com/preemptible": "perhaps"}, True, {}, True),
    ],
)
def test_bare_pods_are_not_preemptible_without_a_label(
    labels: dict[str, str], is_owned: bool, settings: dict[str, bool], is_preemptible: bool
) -> None:
    owner = NEWER if is_owned else None
    assert (
        counted(pod(owner=owner, labels=labels), [NEWER], **settings).is_preemptible
        is is_preemptible
    )


# --- the condition of a pod -----------------------------------------------------------------------


def test_a_claim_lives_on_the_pods_condition() -> None:
    printed = condition("False", Reason.WAITING_FOR_EVICTIONS.value, message="waits")
    found = counted({**gated(), "status": {"phase": "Pending", "conditions": [printed]}})
    assert (
        found.claim_since,
        found.condition_reason,
        found.condition_message,
        found.condition_since,
    ) == (
        1767600600.0,
        "WaitingForEvictions",
        "waits",
        1767600600.0,
    )
    other = counted(
        {**gated(), "status": {"phase": "Pending", "conditions": [condition("False", "OverMax")]}}
    )
    assert (other.claim_since, other.condition_reason) == (None, "OverMax")
    admitted = counted(pod(status={"conditions": [printed]}))
    assert admitted.claim_since is None, "its gate is gone: what it waited for has come"


def test_since_when_it_is_admitted_is_in_its_condition() -> None:
    assert (
        counted(pod(status={"conditions": [condition("True", "Admitted")]})).admitted_at
        == 1767600600.0
    )
    assert counted(pod()).admitted_at == 1767600000.0, "it was there before us"
    assert (
        counted(pod(status={"conditions": [condition("False", "OverMax")]})).admitted_at == inf
    ), "a moment ago"


def test_a_pod_that_is_not_ready_is_seen() -> None:
    assert not counted(
        pod(
            status={
                "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]
            }
        )
    ).is_ready
    assert not counted(gated()).is_ready


# --- disruption budgets ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        ({}, True),
        (None, False),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "x"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, False),
        (
            {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "app", "operator": "DoesNotExist"}],
            },
            False,
        ),
    ],
)
def test_a_budget_protects_the_pods_that_it_selects(
    selector: dict[str, Any] | None, is_selected: bool
) -> None:
    budget = read_budget(
        "b", {"selector": selector}, {"disruptionsAllowed": 1, "observedGeneration": 1}
    )
    found = counted(pod(labels={"app": "web"}, owner=NEWER), [NEWER], [budget])
    assert found.budgets == (("team/b",) if is_selected else ())
    assert counted(pod(namespace="elsewhere", labels={"app": "web"}), (), [budget]).budgets == ()


def test_the_eviction_api_asks_no_budget_for_a_pod_that_does_not_run_yet() -> None:
    budget = read_budget("b", {"selector": {}}, {"disruptionsAllowed": 0, "observedGeneration": 1})
    assert counted(pod(status={"phase": "Pending"}), (), [budget]).budgets == ()


@pytest.mark.parametrize(
    ("status", "generation", "allowed"),
    [
        ({"disruptionsAllowed": 2, "observedGeneration": 3}, 3, 2),
        ({"disruptionsAllowed": 2, "observedGeneration": 2}, 3, 0),
        ({}, 1, 0),
        ({"disruptionsAllowed": -1, "observedGeneration": 1}, 1, 0),
    ],
)
def test_a_budget_that_its_controller_has_not_seen_as_it_is_allows_nothing(
    status: dict[str, int], generation: int, allowed: int
) -> None:
    assert read_budget("b", {"selector": {}}, status, generation).allowed == allowed


# --- which change affects which pods --------------------------------------------------------------


def test_a_follower_learns_whether_other_rows_follow_from_a_change() -> None:
    around, row = PodContext(), read_workload(NEWER)
    assert around.put(row)
    assert not around.put(read_workload({**NEWER, "status": {"replicas": 3}})), (
        "a status changes no pod"
    )
    assert around.put(read_workload({**NEWER, "metadata": meta("web-2", owner=DEPLOYMENT)})), (
        "its revision is gone"
    )
    assert around.drop("uid-web-2") is not None
    assert around.drop("uid-web-2") is None
    budget = read_budget("b", {"selector": {}}, {"disruptionsAllowed": 1, "observedGeneration": 1})
    assert around.put_budget(budget)
    assert not around.put_budget(
        read_budget("b", {"selector": {}}, {"disruptionsAllowed": 0, "observedGeneration": 1})
    )
    assert around.allowed() == {"team/b": 0}
    assert around.put_budget(read_budget("b", {"selector": None}, {}))
    assert around.drop_budget(budget.uid) is not None
    assert around.budgets_of(read_pod(pod())) == ()
