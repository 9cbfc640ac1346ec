"""How many pods one object may ask for, and how many of them its controller makes at once.

Everything here runs on the event loop that answers people, so a controller that made a million pods
in one step would stop the whole laptop. The API refuses such a number, and what it lets through is
made in bursts.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead_sim.objects import resources as served
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import FieldError

MOST_PODS: Final = 2_000
"""Of one object, or of one role of a training job: several such objects leave the laptop answering
within a second or two.
"""

BURST: Final = 500
"""As the real ReplicaSet and Job controllers have it. Nothing wakes them for the rest: the pods
they made do, by being changes.
"""

_COUNTS: Final = {
    served.DEPLOYMENTS: "replicas",
    served.REPLICA_SETS: "replicas",
    served.STATEFUL_SETS: "replicas",
    served.JOBS: "parallelism",
}
_ROLES: Final = {
    served.MPI_JOBS: "mpiReplicaSpecs",
    served.TF_JOBS: "tfReplicaSpecs",
    served.PYTORCH_JOBS: "pytorchReplicaSpecs",
}


def count_errors(ref: ResourceKind, spec: Any) -> list[FieldError]:
    """Faults of the numbers of pods in a spec; what has another shape is for others to refuse."""
    if not isinstance(spec, dict):
        return []
    if ref in _COUNTS:
        return replica_errors(f"spec.{_COUNTS[ref]}", spec.get(_COUNTS[ref]), least=0)
    if ref is served.RAY_CLUSTERS:
        return _group_errors("spec", spec)
    if ref is served.RAY_JOBS:
        return _group_errors("spec.rayClusterSpec", spec.get("rayClusterSpec"))
    roles = spec.get(_ROLES.get(ref, ""))
    if not isinstance(roles, dict):
        return []
    return [
        error
        for role, wanted in roles.items()
        if isinstance(wanted, dict)
        for error in replica_errors(f"spec.{_ROLES[ref]}.{role}.replicas", wanted.get("replicas"))
    ]


def _group_errors(field: str, cluster: Any) -> list[FieldError]:
    groups = cluster.get("workerGroupSpecs") if isinstance(cluster, dict) else None
    return [
        error
        for number, group in enumerate(groups if isinstance(groups, list) else ())
        if isinstance(group, dict)
        for error in replica_errors(
            f"{field}.workerGroupSpecs[{number}].replicas", group.get("replicas")
        )
    ]


def replica_errors(field: str, count: Any, least: int | None = None) -> list[FieldError]:
    """Faults of one number of pods."""
    if count is None:
        return []
    if isinstance(count, bool) or not isinstance(count, int):
        found = _JSON_TYPES.get(type(count), "string")
        return [
            FieldError(
                field,
                "FieldValueTypeInvalid",
                (f'Invalid value: "{found}": {field} in body must be of type integer: "{found}"'),
            )
        ]
    if least is not None and count < least:
        return [
            FieldError(
                field,
                "FieldValueInvalid",
                f"Invalid value: {count}: must be greater than or equal to {least}",
            )
        ]
    if count > MOST_PODS:
        why = (
            f"must be less than or equal to {MOST_PODS}: the simulated cluster makes no more pods "
            "for one object"
        )
        return [FieldError(field, "FieldValueInvalid", f"Invalid value: {count}: {why}")]
    return []


_JSON_TYPES: Final[dict[type, str]] = {
    bool: "boolean",
    float: "number",
    dict: "object",
    list: "array",
}
