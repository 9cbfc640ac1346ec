"""The objects that `arena submit volcanojob` and `sparkjob` make of their few flags.

See docs/spec/arena-cli.md#pods-of-the-kinds.
"""

from __future__ import annotations

import pytest
from tests.cli.submitting import KeepingCluster, assert_refused, at, dry_run, submit

from fairlead.errors import UserError

VJ, SPARK = "vj --name=j", "spark --name=j"
FIRST = "template|spec|containers|0"


def test_a_task_for_each_image_and_the_first_is_the_driver() -> None:
    cluster = KeepingCluster(user="alice")
    printed = submit(
        (
            f"{VJ} --task-images=a:1,b --task-replicas=2 --task-gpus=3 --min-available=4 -l team=x "
            "python t.py"
        ),
        cluster,
    )
    assert printed.out == "job.batch.volcano.sh/j created\n"
    assert "You can run `arena get j --type volcanojob -n default`" in printed.err
    [job] = cluster.created
    assert (job["apiVersion"], job["kind"]) == ("batch.volcano.sh/v1alpha1", "Job")
    assert [job["spec"][key] for key in ("minAvailable", "queue", "schedulerName")] == [
        4,
        "default",
        "volcano",
    ]
    assert [
        (task["name"], task["replicas"], at(task, f"{FIRST}|image"))
        for task in job["spec"]["tasks"]
    ] == [
        ("task-0", 2, "a:1"),
        ("task-1", 2, "b"),
    ]
    assert [
        at(task, "template|metadata|labels").get("volcano-role") for task in job["spec"]["tasks"]
    ] == ["driver", None]
    container = at(job, f"spec|tasks|1|{FIRST}")
    assert container["resources"]["limits"] == {
        "cpu": "250m",
        "memory": "128Mi",
        "nvidia.com/gpu": "3",
    }
    assert (container["command"], container["ports"]) == (
        ["sh", "-c", "python t.py"],
        [{"name": "job-port-1", "containerPort": 2222}],
    )
    assert (
        at(job, "spec|tasks|0|template|spec|restartPolicy") == "Never"
        and at(job, "spec|tasks|0|template|spec|volumes") is None
    )
    assert job["metadata"]["annotations"]["requestGPUsOfJobOwner"] == "12"
    assert all(
        labels["team"] == "x"
        and labels["createdBy"] == "VolcanoJob"
        and labels["app"] == "volcanojob"
        for labels in (job["metadata"]["labels"], at(job, "spec|tasks|1|template|metadata|labels"))
    )


def test_without_flags_it_is_arena_s_three_tasks() -> None:
    [job] = dry_run(VJ)
    assert [at(task, f"{FIRST}|image") for task in job["spec"]["tasks"]] == [
        "ubuntu",
        "nginx",
        "busybox",
    ]
    assert "command" not in at(job, f"spec|tasks|0|{FIRST}")


def test_old_spellings_of_volcano() -> None:
    old = (
        "--minAvailable 2 --schedulerName s --taskName t --taskImages a,b --taskReplicas 2 "
        "--taskCPU 1 --taskMemory 1Gi --taskPort 80"
    )
    new = "--min-available 2 --scheduler-name s --task-name t --task-images a --task-images b"
    new += " --task-replicas 2 --task-cpu 1 --task-memory 1Gi --task-port 80"
    assert dry_run(f"{VJ} {old}") == dry_run(f"{VJ} {new}")
    assert (
        "Flag --taskCPU has been deprecated, please use --task-cpu instead"
        in submit(f"{VJ} {old} --dry-run").err
    )


def test_a_driver_and_executors() -> None:
    cluster = KeepingCluster(user="alice")
    printed = submit(
        (
            f"{SPARK} --replicas=3 --executor-memory-request=2g --driver-cpu-request=2 "
            "--image=i -a "
            "n=1 100 200"
        ),
        cluster,
    )
    assert printed.out == "sparkapplication.sparkoperator.k8s.io/j created\n"
    [job] = cluster.created
    spec = job["spec"]
    assert (job["apiVersion"], job["kind"], spec["type"], spec["mode"]) == (
        *("sparkoperator.k8s.io/v1beta2", "SparkApplication", "Scala", "cluster"),
    )
    assert (spec["image"], spec["sparkVersion"], spec["arguments"]) == (
        "i",
        "3.5.0",
        ["100", "200"],
    )
    assert {key: spec["driver"][key] for key in ("cores", "memory", "serviceAccount")} == {
        "cores": 2,
        "memory": "500m",
        "serviceAccount": "spark",
    }
    assert {key: spec["executor"][key] for key in ("cores", "memory", "instances")} == {
        "cores": 1,
        "memory": "2g",
        "instances": 3,
    }
    for part in (job["metadata"], spec["driver"], spec["executor"]):
        assert (
            part["labels"]["createdBy"] == "SparkJob"
            and part["labels"]["version"] == "3.5.0"
            and part["annotations"]["n"] == "1"
        )
        assert part["annotations"]["arena.kubeflow.org/username"] == "alice"


def test_the_version_of_spark_decides_image_and_jar_unless_they_are_given() -> None:
    [job] = dry_run(f"{SPARK} --spark-version=4.0.1")
    assert job["spec"]["image"] == "spark:4.0.1" and "arguments" not in job["spec"]
    assert (
        job["spec"]["mainApplicationFile"]
        == "local:///opt/spark/examples/jars/spark-examples_2.12-4.0.1.jar"
    )
    assert job["spec"]["mainClass"] == "org.apache.spark.examples.SparkPi"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("vj", 'required flag(s) "name" not set'),
        (f"{VJ} --task-images=a,,b", "--task-images is invalid: `a,,b`"),
        (f"{VJ} --task-replicas=0", "--task-replicas is invalid"),
        (
            f"{VJ} --task-images=a --min-available=2",
            "--min-available is invalid: it is 2, and the job has 1 pods",
        ),
        (f"{VJ} --task-gpus=-1", "--task-gpus is invalid"),
        (f"{VJ} --task-memory=lots", "--task-memory is invalid"),
        (f"{VJ} --task-name=A_b", "--task-name is invalid: `A_b` is not a valid name of a task"),
        (f"{VJ} --task-name={'a' * 62}", "is not a valid name of a task"),
        (f"{VJ} --task-port=70000", "--task-port is invalid"),
        ("spark", 'required flag(s) "name" not set'),
        (f"{SPARK} --replicas=0", "failed to validate command args: WorkersMustMoreThanOne"),
        (
            f"{SPARK} --driver-memory-request=half",
            "--driver-memory-request is invalid: `half` is not a size",
        ),
        (f"{SPARK} --executor-cpu-request=0", "--executor-cpu-request is invalid"),
        (
            f"{SPARK} --executor-cpu-request=1.5",
            ('invalid argument "1.5" for "--executor-cpu-request" flag'),
        ),
        (f"{SPARK} --gpus=1", "unknown flag: --gpus"),
    ],
)
def test_what_cannot_be_is_reported_before_any_request(line: str, message: str) -> None:
    assert_refused(line, message)


@pytest.mark.parametrize(
    ("line", "kind"),
    [(VJ, "jobs.batch.volcano.sh"), (SPARK, "sparkapplications.sparkoperator.k8s.io")],
)
def test_a_cluster_without_the_operator(line: str, kind: str) -> None:
    cluster = KeepingCluster({})
    with pytest.raises(UserError) as refused:
        submit(line, cluster)
    assert (
        f"the cluster serves no {kind} (looked for: "
    ) in refused.value.what and cluster.created == []
