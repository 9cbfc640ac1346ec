"""ScaleIn and ScaleOut: et-operator's objects that remove or add workers of an elastic job once.

The script runs in the launcher and notifies the program; the operator only creates or deletes the
pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.kinds.parts.elastic_training import GROUP, VERSIONS
from fairlead.model.jobs.job import Job

WORKER: Final = "worker"
LEAST_WORKERS: Final = 1
MOST_WORKERS: Final = 1000
"""et-operator's bounds for a job without its own, in workers."""


class Scaling(Struct, frozen=True):
    """`field`: the field of the spec with the count; `script`: the default script."""

    kind: str
    field: str
    script: str


IN: Final = Scaling("ScaleIn", "toDelete", "/usr/local/bin/scaler.sh --delete")
OUT: Final = Scaling("ScaleOut", "toAdd", "/usr/local/bin/scaler.sh --add")


class ScalingSpec(Struct, frozen=True, kw_only=True):
    name: str
    count: int
    script: str
    env: Mapping[str, str] = {}
    retry: int = 0
    timeout_seconds: int = 60


def bounds(job: Job) -> tuple[int, int]:
    """The least and the largest number of workers that the job may have."""
    role = next((role for role in job.roles if role.name == WORKER), None)
    least, most = (role.least, role.most) if role is not None else (None, None)
    return LEAST_WORKERS if least is None else least, MOST_WORKERS if most is None else most


def scaling_object(scaling: Scaling, job: Job, spec: ScalingSpec) -> dict[str, Any]:
    """The object, owned by the job: deleting the job deletes it."""
    owner = {
        "apiVersion": job.api_version,
        "kind": job.kind,
        "name": job.name,
        "uid": job.uid,
        "controller": False,
    }
    body: dict[str, Any] = {"selector": {"name": job.name}, "script": spec.script}
    if spec.env:
        body["env"] = [{"name": name, "value": value} for name, value in spec.env.items()]
    body |= {
        "backoffLimit": spec.retry,
        "timeout": spec.timeout_seconds,
        scaling.field: {"count": spec.count},
    }
    return {
        "apiVersion": f"{GROUP}/{VERSIONS[0]}",
        "kind": scaling.kind,
        "metadata": {"name": spec.name, "namespace": job.namespace, "ownerReferences": [owner]},
        "spec": body,
    }
