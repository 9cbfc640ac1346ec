"""Job objects for tests, as their controllers write them, read back through each kind's wire struct
into a snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from tests.cli.api_objects import Object

from fairlead.kinds.registry import KINDS
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.event import Event
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source
from fairlead.wire.kube.objects import WirePod, parse_pod

CREATED: Final = datetime(2026, 1, 5, 10, 0, 0, tzinfo=UTC).timestamp()
SPECS: Final = {
    "MPIJob": "mpiReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "PyTorchJob": "pytorchReplicaSpecs",
}
VERSIONS: Final = {"MPIJob": "v2beta1", "TFJob": "v1", "PyTorchJob": "v1"}


def moment(seconds: float) -> str:
    """The time `seconds` after CREATED."""
    return datetime.fromtimestamp(CREATED + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def job(
    kind: str,
    name: str,
    roles: dict[str, tuple[int, int]],
    *,
    namespace: str = "default",
    states: Iterable[str] = ("Created", "Running"),
    started: float | None = 0.0,
    ended: float | None = None,
    created: float = 0.0,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> Object:
    """`roles`: replicas and GPUs of each role; `states`: types of its true conditions; times in
    seconds after CREATED.
    """
    return {
        "apiVersion": f"kubeflow.org/{VERSIONS[kind]}",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "creationTimestamp": moment(created),
            "labels": labels or {},
            "annotations": annotations or {},
        },
        "spec": {
            SPECS[kind]: {
                role: _replica(replicas, gpus) for role, (replicas, gpus) in roles.items()
            }
        },
        "status": {
            "conditions": [
                {"type": state, "status": "True", "lastTransitionTime": moment(started or 0)}
                for state in states
            ],
            **({} if started is None else {"startTime": moment(started)}),
            **({} if ended is None else {"completionTime": moment(ended)}),
        },
    }


def _replica(replicas: int, gpus: int) -> Object:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "replicas": replicas,
        "template": {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}},
    }


def job_pod(
    of: Object,
    name: str,
    role: str,
    *,
    gpus: int = 0,
    on: str = "",
    ip: str = "",
    phase: str = "Running",
    index: str = "0",
    created: float = 0.0,
    owner: str = "",
) -> Object:
    """`owner`: kind of the controller that owns the pod; by default the job itself."""
    metadata = of["metadata"]
    uid = f"uid-{owner}-{name}" if owner else metadata["uid"]
    state = (
        {"running": {"startedAt": moment(created)}}
        if phase == "Running"
        else {"waiting": {"reason": "ContainerCreating"}}
    )
    return {
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "uid": f"uid-pod-{metadata['namespace']}-{name}",
            "creationTimestamp": moment(created),
            "labels": {
                "training.kubeflow.org/job-name": metadata["name"],
                "training.kubeflow.org/operator-name": "mpi-operator"
                if of["kind"] == "MPIJob"
                else f"{of['kind'].lower()}-controller",
                "training.kubeflow.org/replica-type": role,
                "training.kubeflow.org/replica-index": index,
            },
            "ownerReferences": [
                {
                    "kind": owner or of["kind"],
                    "name": metadata["name"],
                    "uid": uid,
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": on,
            "containers": [
                {
                    "name": "main",
                    "resources": {"limits": {"nvidia.com/gpu": str(gpus)} if gpus else {}},
                }
            ],
        },
        "status": {
            "phase": phase,
            "hostIP": ip,
            "startTime": moment(created),
            "containerStatuses": [{"name": "main", "state": state}] if on else [],
        },
    }


def as_job(obj: Object) -> Job:
    (kind,) = (kind for kind in KINDS if obj["kind"] == kind.KIND)
    wire: Any = msgspec.json.decode(json.dumps(obj), type=kind.WIRE)
    return kind.parse(wire, VERSIONS[obj["kind"]])


def as_pod(obj: Object) -> Pod:
    return parse_pod(msgspec.json.decode(json.dumps(obj), type=WirePod))


def cluster(
    jobs: Iterable[Object],
    pods: Iterable[Object] = (),
    *,
    after: float = 0.0,
    readings: Iterable[GpuReading] = (),
    sources: dict[str, Source] | None = None,
    events: Iterable[Event] = (),
) -> ClusterSnapshot:
    """A snapshot that is read `after` seconds after CREATED."""
    return ClusterSnapshot(
        jobs=tuple(sorted((as_job(each) for each in jobs), key=lambda each: each.key)),
        pods=tuple(
            sorted((as_pod(each) for each in pods), key=lambda each: (each.namespace, each.name))
        ),
        gpus=tuple(readings),
        sources=sources or {},
        events=tuple(events),
        taken_at=CREATED + after,
    )
