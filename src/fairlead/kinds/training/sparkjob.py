"""SparkJob, as arena says: a SparkApplication (spark-operator), a driver, which is the chief, and its executors.

The driver makes the executors itself, so their owner is the driver's pod; the operator labels both with the application's name.
"""

from __future__ import annotations

from typing import Final

from fairlead.kinds.parts.kind import is_named_member, newest_not_pending, select_named_pods
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names
from fairlead.wire.jobs.spark import WireSparkApplication, parse_spark_application

TYPE: Final = "sparkjob"
KIND: Final = "SparkApplication"
GROUP: Final = "sparkoperator.k8s.io"
PLURAL: Final = "sparkapplications"
VERSIONS: Final = ("v1beta2",)
TITLE: Final = "SPARKJOB"
WORDS: Final = ("Spark", "spark")
WIRE: Final = WireSparkApplication
POD_LABELS: Final = (names.LABEL_SPARK_APP,)
OLDER_POD_LABELS: Final = ()


def parse(wire: WireSparkApplication, version: str) -> Job:
    return parse_spark_application(wire, TYPE, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    return pod.labels.get(names.LABEL_SPARK_ROLE, "")


def is_member(pod: Pod, job: Job) -> bool:
    return is_named_member(pod, job, names.LABEL_SPARK_APP)


def pods_of(job: Job, snapshot: ClusterSnapshot) -> list[Pod]:
    return select_named_pods(job, snapshot, names.LABEL_SPARK_APP)


def pod_selectors(job: Job) -> tuple[str, ...]:
    return (f"{names.LABEL_SPARK_APP}={job.name}",)


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    return newest_not_pending([pod for pod in pods if role_of(pod) == "driver"])
