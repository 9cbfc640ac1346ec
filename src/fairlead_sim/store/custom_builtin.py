"""The CustomResourceDefinitions of kinds with controllers here; every simulated cluster has them.

On a real cluster an operator's installation brings them. Their schemas describe no field, the quota
tree's excepted: the operators' own definitions may be applied over them.
"""

from __future__ import annotations

from typing import Any

from fairlead.wire.quota.tree_definition import quota_tree_definition
from fairlead_sim.objects import resources as served
from fairlead_sim.objects.object_names import ObjectNames
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.crd_schema import PRESERVE
from fairlead_sim.schema.resource import ResourceKind

_WORDS = (
    "Whatever is written here is kept: the simulated cluster has no schema of this kind. Its "
    "operator's own definition brings one."
)
_ANYTHING = {"type": "object", "description": _WORDS, PRESERVE: True}
_SCHEMA = {"type": "object", "properties": {"spec": _ANYTHING, "status": _ANYTHING}}
_AGE = {"jsonPath": ".metadata.creationTimestamp", "name": "Age", "type": "date"}
_TRAINING = ({"jsonPath": ".status.conditions[-1:].type", "name": "State", "type": "string"}, _AGE)

# As in the definitions of the operators; kinds that stand in neither table show their age alone.
_COLUMNS: dict[ResourceKind, tuple[dict[str, str], ...]] = {
    served.TF_JOBS: _TRAINING,
    served.PYTORCH_JOBS: _TRAINING,
    served.RAY_JOBS: (
        {"jsonPath": ".status.jobStatus", "name": "job status", "type": "string"},
        {"jsonPath": ".status.jobDeploymentStatus", "name": "deployment status", "type": "string"},
        {"jsonPath": ".status.rayClusterName", "name": "ray cluster name", "type": "string"},
        {"jsonPath": ".status.startTime", "name": "start time", "type": "string"},
        {"jsonPath": ".status.endTime", "name": "end time", "type": "string"},
        _AGE,
    ),
    served.RAY_CLUSTERS: (
        {"jsonPath": ".status.desiredWorkerReplicas", "name": "desired workers", "type": "integer"},
        {
            "jsonPath": ".status.availableWorkerReplicas",
            "name": "available workers",
            "type": "integer",
        },
        {"jsonPath": ".status.state", "name": "status", "type": "string"},
        _AGE,
    ),
}
_OTHER_VERSIONS: dict[ResourceKind, tuple[str, ...]] = {served.MPI_JOBS: ("v1",)}
"""Versions served beside the stored one, with the same fields.

People of that time wrote some fields in other places (`kubeflow_status.run_policy`).
"""
_SCALES: dict[ResourceKind, dict[str, str]] = {
    served.PYTORCH_JOBS: {
        "specReplicasPath": ".spec.pytorchReplicaSpecs.Worker.replicas",
        "statusReplicasPath": ".status.replicaStatuses.Worker.active",
        "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
    }
}


def builtin_definitions(seed: int) -> list[Object]:
    """One definition for every custom kind among the resources.

    Their uids are not from the world's sequence of uids.
    """
    names = ObjectNames(seed, 1 << 40)
    return [_definition(ref, names.uid()) for ref in served.RESOURCES if ref.is_custom]


def _quota_definition(uid: str) -> Object:
    """The definition of the quota tree is Fairlead's own, and therefore complete."""
    definition = quota_tree_definition()
    (version,) = definition["spec"]["versions"]
    return {
        **definition,
        "metadata": {**definition["metadata"], "uid": uid, "generation": 1},
        "spec": {**definition["spec"], "conversion": {"strategy": "None"}},
        "status": {"storedVersions": [version["name"]]},
    }


def _definition(ref: ResourceKind, uid: str) -> Object:
    if ref is served.ELASTIC_QUOTA_TREES:
        return _quota_definition(uid)
    subresources: Object = {"status": {}} if "status" in ref.subresources else {}
    if ref in _SCALES:
        subresources["scale"] = _SCALES[ref]
    version: Object = {
        "name": ref.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _SCHEMA},
    }
    if subresources:
        version["subresources"] = subresources
    if ref in _COLUMNS:
        version["additionalPrinterColumns"] = list(_COLUMNS[ref])
    names: dict[str, Any] = {
        "plural": ref.plural,
        "singular": ref.singular,
        "kind": ref.kind,
        "listKind": f"{ref.kind}List",
    }
    if ref.short_names:
        names["shortNames"] = list(ref.short_names)
    metadata: Object = {"name": ref.group_resource, "uid": uid, "generation": 1}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "conversion": {"strategy": "None"},
            "group": ref.group,
            "names": names,
            "scope": "Namespaced" if ref.namespaced else "Cluster",
            "versions": [
                version,
                *(
                    {**version, "name": name, "storage": False}
                    for name in _OTHER_VERSIONS.get(ref, ())
                ),
            ],
        },
        "status": {"storedVersions": [ref.version]},
    }
