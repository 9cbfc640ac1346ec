"""How is a Cron written? A schedule and the TFJob that it makes each time.

What a newcomer gets wrong: the job has no name here. The controller calls each one after the cron and the time, and a name of its own
would make it forbid that two run at once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from fairlead.kinds.parts.job_parts import Manifest, job_manifest
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.parts.kind_options import CronOptions
from fairlead.kinds.training import tfjob_manifest
from fairlead.kinds.training.cron import GROUP, KIND, TYPE
from fairlead.wire.kube.time import render_time

CREATED_VERSIONS: Final = ("v1alpha1",)
READS_SCHEMA: Final = False


def requested_gpus(spec: JobSpec) -> int:
    """Of each job that it makes."""
    return tfjob_manifest.requested_gpus(spec)


def chief_labels(spec: JobSpec) -> dict[str, str]:
    return {}


def manifest(spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> Manifest:
    options = spec.options if isinstance(spec.options, CronOptions) else CronOptions()
    job = tfjob_manifest.manifest(spec, tfjob_manifest.CREATED_VERSIONS[0])
    metadata = {key: job["metadata"][key] for key in ("labels", "annotations")}
    body: Manifest = {"schedule": options.schedule, "concurrencyPolicy": options.concurrency, "historyLimit": options.history_limit}
    if options.is_suspended:
        body["suspend"] = True
    if options.deadline is not None:
        body["deadline"] = render_time(options.deadline)
    workload = {"metadata": metadata, "spec": job["spec"]}
    body["template"] = {"apiVersion": job["apiVersion"], "kind": job["kind"], "workload": workload}
    return job_manifest(spec, TYPE, KIND, f"{GROUP}/{version}", requested_gpus(spec), body)
