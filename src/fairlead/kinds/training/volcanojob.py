"""VolcanoJob in arena: a Job of Volcano with one task per image.

The pods of the first task are the driver.

The restart policy of a pod defaults to `Always`, with which a task's pods restart for ever and its
job never completes; so the manifest has `Never`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.kinds.parts.job_parts import Part, job_manifest, pod_template
from fairlead.kinds.parts.kind import NamedPods, newest_not_pending
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.wire import names
from fairlead.wire.jobs.volcano import WireVolcanoJob, parse_volcano_job

if TYPE_CHECKING:
    from collections.abc import Collection

    from fairlead.kinds.parts.job_spec import JobSpec
    from fairlead.model.actions import Manifest

TYPE: Final = "volcanojob"
KIND: Final = "Job"
GROUP: Final = "batch.volcano.sh"
PLURAL: Final = "jobs"
VERSIONS: Final = ("v1alpha1",)
CREATED_VERSIONS: Final = ("v1alpha1",)
READS_SCHEMA: Final = False
TITLE: Final = "VOLCANOJOB"
WORDS: Final = ("Volcano", "volcano")
WIRE: Final = WireVolcanoJob
POD_LABELS: Final = (names.LABEL_VOLCANO_JOB,)
OLDER_POD_LABELS: Final = ()
_PODS: Final = NamedPods(names.LABEL_VOLCANO_JOB)
_MAKER: Final = "VolcanoJob"
"""The value of the label `createdBy`; `Job` would mean Kubernetes' own kind."""


class VolcanoOptions(Struct, frozen=True, kw_only=True):
    """One task for each of `images`, all with the worker's replicas, GPUs and resources."""

    images: tuple[str, ...] = ()
    task_name: str = "task"
    port: int = 2222
    min_available: int = 1
    queue: str = "default"


def parse(wire: WireVolcanoJob, version: str) -> Job:
    return parse_volcano_job(wire, TYPE, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    """The name of the pod's task."""
    return pod.labels.get(names.LABEL_VOLCANO_TASK, "")


is_member = _PODS.is_member
pods_of = _PODS.pods_of
pod_selectors = _PODS.selectors


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    """The driver, which arena labels.

    For a job that arena did not write, a pod of the first task.
    """
    drivers = [pod for pod in pods if pod.labels.get(names.LABEL_VOLCANO_ROLE) == "driver"]
    first = job.roles[0].name if job.roles else ""
    return newest_not_pending(drivers or [pod for pod in pods if role_of(pod) == first])


def requested_gpus(spec: JobSpec) -> int:
    return len(_options(spec).images) * spec.worker.replicas * spec.worker.gpus


def chief_labels(spec: JobSpec) -> dict[str, str]:
    return {"release": spec.name, names.LABEL_VOLCANO_ROLE: "driver"}


def manifest(spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> Manifest:
    options, gpus = _options(spec), requested_gpus(spec)
    body: Manifest = {"minAvailable": options.min_available, "queue": options.queue}
    if spec.scheduler:
        body["schedulerName"] = spec.scheduler
    body["tasks"] = [_task(spec, options, gpus, index) for index in range(len(options.images))]
    return {**job_manifest(spec, TYPE, _MAKER, f"{GROUP}/{version}", gpus, body), "kind": KIND}


def _options(spec: JobSpec) -> VolcanoOptions:
    return spec.options if isinstance(spec.options, VolcanoOptions) else VolcanoOptions()


def _task(spec: JobSpec, options: VolcanoOptions, gpus: int, index: int) -> Manifest:
    name = f"{options.task_name}-{index}"
    labels = {names.LABEL_VOLCANO_ROLE: "driver"} if index == 0 else {}
    role = replace(spec.worker, image=options.images[index])
    part = Part(type=TYPE, container=name, role=role, labels=labels, has_counts=False)
    template = pod_template(spec, _MAKER, gpus, part)
    template["spec"]["restartPolicy"] = "Never"
    if options.port:
        template["spec"]["containers"][0]["ports"] = [
            {"name": f"job-port-{index}", "containerPort": options.port}
        ]
    return {"name": name, "replicas": spec.worker.replicas, "template": template}
