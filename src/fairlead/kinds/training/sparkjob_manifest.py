"""How is a SparkApplication written? A driver and its executors, sized by themselves; what runs is a class in a jar.

What a newcomer gets wrong: there is no pod template here. The operator hands all of this to spark-submit, which makes the pods.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from fairlead.kinds.parts.job_parts import Manifest, annotations_of, job_manifest, labels_of
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.parts.kind_options import SparkOptions
from fairlead.kinds.training.sparkjob import GROUP, KIND, TYPE
from fairlead.wire import names

CREATED_VERSIONS: Final = ("v1beta2",)
READS_SCHEMA: Final = False
_MAKER: Final = "SparkJob"
"""What arena's label `createdBy` calls it."""


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
        "driver": {"cores": options.driver_cores, "memory": options.driver_memory, **pod, **account},
        "executor": {"cores": options.executor_cores, "instances": options.executors, "memory": options.executor_memory, **pod},
    }
    job = job_manifest(spec, TYPE, KIND, f"{GROUP}/{version}", 0, body)
    job["metadata"]["labels"] = labels
    return job
