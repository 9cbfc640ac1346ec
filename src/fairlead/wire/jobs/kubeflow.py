"""Job objects of the kubeflow operators (MPIJob, TFJob, PyTorchJob): fields that Fairlead reads.

The three kinds differ only in one key of `spec` (`mpiReplicaSpecs`, …), so one struct has all of
these keys and one function makes the job. The oldest MPIJob (v1alpha1) differs in shape: it has one
template for the workers, a launcher without GPUs, and a single status word instead of conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from fairlead.model.jobs.job import Job, JobStatus, Role
from fairlead.model.pod import needed_by
from fairlead.wire import names
from fairlead.wire.jobs.job_object import ended_at, make_job
from fairlead.wire.kube.objects import (
    WireCondition,
    WireMeta,
    WirePodSpec,
    epoch,
    parse_conditions,
    parse_containers,
)


class WireTemplate(Struct, gc=False):
    spec: WirePodSpec | None = None


class WireReplica(Struct, gc=False, rename="camel"):
    replicas: int | None = None
    template: WireTemplate | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None


class WireSchedulingPolicy(Struct, gc=False, rename="camel"):
    priority_class: str | None = None
    min_available: int | None = None


class WireRunPolicy(Struct, gc=False, rename="camel"):
    suspend: bool | None = None
    scheduling_policy: WireSchedulingPolicy | None = None


Replicas = dict[str, WireReplica | None]


class WireJobSpec(Struct, gc=False, rename="camel"):
    mpi_replica_specs: Replicas | None = None
    tf_replica_specs: Replicas | None = None
    pytorch_replica_specs: Replicas | None = None
    run_policy: WireRunPolicy | None = None
    launcher_creation_policy: str | None = None
    suspend: bool | None = None
    replicas: int | None = None
    template: WireTemplate | None = None


class WireJobStatus(Struct, gc=False, rename="camel"):
    conditions: list[WireCondition] | None = None
    start_time: datetime | None = None
    completion_time: datetime | None = None
    launcher_status: str | None = None


class WireJob(Struct, gc=False, rename="camel"):
    metadata: WireMeta
    api_version: str | None = None
    spec: WireJobSpec | None = None
    status: WireJobStatus | None = None


_LATE_LAUNCHER: Final = "WaitForWorkersReady"
_OLDEST_WORDS: Final = {"Succeeded": JobStatus.SUCCEEDED, "Failed": JobStatus.FAILED}


def parse_kubeflow_job(wire: WireJob, type_: str, kind: str, api_version: str) -> Job:
    """The job.

    `finished_at` is completionTime, else when a Failed or Succeeded condition became true.
    """
    spec, status = wire.spec or WireJobSpec(), wire.status or WireJobStatus()
    run = spec.run_policy or WireRunPolicy()
    conditions = parse_conditions(status.conditions)
    roles = parse_roles(
        spec.mpi_replica_specs or spec.tf_replica_specs or spec.pytorch_replica_specs or {}
    )
    return make_job(
        wire,
        type_,
        kind,
        api_version,
        roles=roles,
        conditions=conditions,
        suspended=bool(run.suspend or spec.suspend),
        priority_class=_priority_class(spec, run),
        started_at=epoch(status.start_time),
        finished_at=epoch(status.completion_time) or ended_at(conditions),
        least=run.scheduling_policy.min_available if run.scheduling_policy else None,
        late=_launchers(roles) if spec.launcher_creation_policy == _LATE_LAUNCHER else (),
    )


def parse_oldest_mpi_job(wire: WireJob, type_: str, kind: str, api_version: str) -> Job:
    """An MPIJob of v1alpha1. Its end is known from completionTime only.

    A job that has a number of GPUs instead of replicas has no roles.
    """
    job, spec, status = (
        parse_kubeflow_job(wire, type_, kind, api_version),
        wire.spec or WireJobSpec(),
        wire.status or WireJobStatus(),
    )
    worker = WireReplica(spec.replicas, spec.template)
    roles = () if spec.replicas is None else (Role("launcher", 1), _parse_role("worker", worker))
    return msgspec.structs.replace(
        job,
        roles=roles,
        late=_launchers(roles),
        word=_OLDEST_WORDS.get(status.launcher_status or "", JobStatus.RUNNING),
        lead=(names.LABEL_OLD_MPI_ROLE, "launcher"),
        priority_class=job.priority_class or priority_class_of({"worker": worker}),
        started_at=job.started_at or job.created_at,
    )


def _launchers(roles: tuple[Role, ...]) -> tuple[Role, ...]:
    return tuple(role for role in roles if role.name == "launcher")


def parse_roles(replicas: Mapping[str, WireReplica | None]) -> tuple[Role, ...]:
    """Roles in the order of the object, names in lower case (`launcher`, `ps`).

    Absent `replicas` is 1, the operators' default.
    """
    return tuple(_parse_role(name, wire or WireReplica()) for name, wire in replicas.items())


def _parse_role(name: str, wire: WireReplica) -> Role:
    spec = (wire.template.spec if wire.template else None) or WirePodSpec()
    containers, inits = parse_containers(spec.containers), parse_containers(spec.init_containers)
    return Role(
        name=name.lower(),
        replicas=1 if wire.replicas is None else max(0, wire.replicas),
        limits=needed_by(containers, inits, lambda container: container.limits),
        requests=needed_by(containers, inits, lambda container: container.requests),
        least=wire.min_replicas,
        most=wire.max_replicas,
    )


def _priority_class(spec: WireJobSpec, run: WireRunPolicy) -> str:
    if run.scheduling_policy and run.scheduling_policy.priority_class:
        return run.scheduling_policy.priority_class
    named = (
        priority_class_of(group or {})
        for group in (spec.mpi_replica_specs, spec.tf_replica_specs, spec.pytorch_replica_specs)
    )
    return next(filter(None, named), "")


def priority_class_of(replicas: Mapping[str, WireReplica | None]) -> str:
    """The first priority class in the pod templates of the roles; "" = none."""
    specs = (
        replica.template.spec
        for replica in replicas.values()
        if replica and replica.template and replica.template.spec
    )
    return next((spec.priority_class_name for spec in specs if spec.priority_class_name), "")
