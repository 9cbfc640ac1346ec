"""SparkJob in arena: a SparkApplication (spark-operator) with driver and executors.

The driver is the chief.

The driver creates the executors itself, so the driver's pod owns them; the operator labels both
with the application's name. The manifest has no pod template: the operator passes its fields to
spark-submit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from fairlead.kinds.parts.job_parts import annotations_of, job_manifest, labels_of
from fairlead.kinds.parts.kind import NamedPods, newest_not_pending
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.wire import names
from fairlead.wire.jobs.spark import WireSparkApplication, parse_spark_application

if TYPE_CHECKING:
    from collections.abc import Collection

    from fairlead.kinds.parts.job_spec import JobSpec
    from fairlead.model.actions import Manifest

TYPE: Final = "sparkjob"
KIND: Final = "SparkApplication"
GROUP: Final = "sparkoperator.k8s.io"
PLURAL: Final = "sparkapplications"
VERSIONS: Final = ("v1beta2",)
CREATED_VERSIONS: Final = ("v1beta2",)
READS_SCHEMA: Final = False
TITLE: Final = "SPARKJOB"
WORDS: Final = ("Spark", "spark")
WIRE: Final = WireSparkApplication
POD_LABELS: Final = (names.LABEL_SPARK_APP,)
OLDER_POD_LABELS: Final = ()
_PODS: Final = NamedPods(names.LABEL_SPARK_APP)
_MAKER: Final = "SparkJob"
"""The value of arena's label `createdBy`."""


class SparkOptions(Struct, frozen=True, kw_only=True):
    """Options of a SparkJob.

    `jar`: the file to run, with its `main_class`; memory in Spark's format (`500m` means 500 MiB).
    """

    main_class: str = ""
    jar: str = ""
    version: str = "3.5.0"
    arguments: tuple[str, ...] = ()
    executors: int = 1
    driver_cores: int = 1
    driver_memory: str = "500m"
    executor_cores: int = 1
    executor_memory: str = "500m"


def parse(wire: WireSparkApplication, version: str) -> Job:
    return parse_spark_application(wire, TYPE, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    return pod.labels.get(names.LABEL_SPARK_ROLE, "")


is_member = _PODS.is_member
pods_of = _PODS.pods_of
pod_selectors = _PODS.selectors


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    return newest_not_pending([pod for pod in pods if role_of(pod) == "driver"])


def requested_gpus(spec: JobSpec) -> int:
    return 0


def chief_labels(spec: JobSpec) -> dict[str, str]:
    return {names.LABEL_SPARK_APP: spec.name, names.LABEL_SPARK_ROLE: "driver"}


def manifest(spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> Manifest:
    options = spec.options if isinstance(spec.options, SparkOptions) else SparkOptions()
    labels = {**labels_of(spec, TYPE, _MAKER), "version": options.version}
    pod = {"labels": labels, "annotations": annotations_of(spec, 0)}
    account = {"serviceAccount": spec.service_account} if spec.service_account else {}
    body: Manifest = {
        "type": "Scala",
        "mode": "cluster",
        "image": spec.image,
        "imagePullPolicy": spec.pull_policy,
        "mainClass": options.main_class,
        "mainApplicationFile": options.jar,
        **({"arguments": list(options.arguments)} if options.arguments else {}),
        "sparkVersion": options.version,
        "restartPolicy": {"type": "Never"},
        "driver": {
            "cores": options.driver_cores,
            "memory": options.driver_memory,
            **pod,
            **account,
        },
        "executor": {
            "cores": options.executor_cores,
            "instances": options.executors,
            "memory": options.executor_memory,
            **pod,
        },
    }
    job = job_manifest(spec, TYPE, KIND, f"{GROUP}/{version}", 0, body)
    job["metadata"]["labels"] = labels
    return job
