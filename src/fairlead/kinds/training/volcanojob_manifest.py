"""How is a Job of Volcano written? One task for each image, all of the same size; the pods of the first are the driver.

What a newcomer gets wrong: a pod's restart policy is `Always` unless somebody says otherwise, and a task whose pods start again for ever
never completes its job; so it is `Never` here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from fairlead.kinds.parts.job_parts import Manifest, Part, job_manifest, pod_template
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.parts.kind_options import VolcanoOptions
from fairlead.kinds.training.volcanojob import GROUP, KIND, TYPE
from fairlead.wire import names

CREATED_VERSIONS: Final = ("v1alpha1",)
READS_SCHEMA: Final = False
_MAKER: Final = "VolcanoJob"
"""What the label `createdBy` calls it: `Job` alone would be Kubernetes' own."""


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
        template["spec"]["containers"][0]["ports"] = [{"name": f"job-port-{index}", "containerPort": options.port}]
    return {"name": name, "replicas": spec.worker.replicas, "template": template}
