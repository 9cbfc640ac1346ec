"""Cron (KubeDL): a schedule, and the TFJob that it creates each time.

A cron is submitted like a job, but is in no list of jobs.

The TFJob has no name here: the controller names each after the cron and the time, and with a fixed
name two could not run at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from fairlead.kinds.parts.job_parts import job_manifest
from fairlead.kinds.training import tfjob
from fairlead.wire.kube.time import render_time

if TYPE_CHECKING:
    from collections.abc import Collection

    from fairlead.kinds.parts.job_spec import JobSpec
    from fairlead.model.actions import Manifest

TYPE: Final = "cron"
KIND: Final = "Cron"
GROUP: Final = "apps.kubedl.io"
PLURAL: Final = "crons"
VERSIONS: Final = ("v1alpha1",)
CREATED_VERSIONS: Final = ("v1alpha1",)
READS_SCHEMA: Final = False


class CronOptions(Struct, frozen=True, kw_only=True):
    """When jobs are created, and until when (`deadline`, epoch seconds).

    `concurrency` is Allow, Forbid or Replace.
    """

    schedule: str = ""
    concurrency: str = "Allow"
    is_suspended: bool = False
    deadline: float | None = None
    history_limit: int = 10


def requested_gpus(spec: JobSpec) -> int:
    """The GPUs of each job that it creates."""
    return tfjob.requested_gpus(spec)


def chief_labels(spec: JobSpec) -> dict[str, str]:
    return {}


def manifest(spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> Manifest:
    options = spec.options if isinstance(spec.options, CronOptions) else CronOptions()
    job = tfjob.manifest(spec, tfjob.CREATED_VERSIONS[0])
    metadata = {key: job["metadata"][key] for key in ("labels", "annotations")}
    body: Manifest = {
        "schedule": options.schedule,
        "concurrencyPolicy": options.concurrency,
        "historyLimit": options.history_limit,
    }
    if options.is_suspended:
        body["suspend"] = True
    if options.deadline is not None:
        body["deadline"] = render_time(options.deadline)
    workload = {"metadata": metadata, "spec": job["spec"]}
    body["template"] = {"apiVersion": job["apiVersion"], "kind": job["kind"], "workload": workload}
    return job_manifest(spec, TYPE, KIND, f"{GROUP}/{version}", requested_gpus(spec), body)
