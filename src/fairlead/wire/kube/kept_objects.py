"""The fields of Kubernetes objects that a snapshot saves.

A simulated cluster can continue from them.

This is a list of what is kept, not of what is secret. Environment variables, commands (except one
known word), arguments, volumes, all other data and any field that this module does not name are
left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from fairlead.model.source import Source
from fairlead.wire.names import KEPT_ANNOTATION_PREFIXES, QUOTA_GROUP, QUOTA_PLURAL, QUOTA_VERSION

Object = dict[str, Any]


class KeptObjects(NamedTuple):
    """The objects that were read, and the kinds that could not be read, each as a source."""

    objects: Sequence[Object]
    unread: Sequence[Source] = ()


_AS_IS: Final = "as it is"
_ANY_KEY: Final = "*"
Keep = str | Mapping[str, Any] | list[Any] | tuple[str, ...]
"""What to keep of a value:

the word `_AS_IS`: the whole value; a mapping: these keys, each with what to keep of it (`*`: all
keys); a list of one: what to keep of each item; a tuple: the first item, if it is one of these
words.
"""

_ANNOTATIONS: Final = (*KEPT_ANNOTATION_PREFIXES, "deployment.kubernetes.io/")


def _fields(*names: str, **more: Keep) -> Mapping[str, Keep]:
    return {**dict.fromkeys(names, _AS_IS), **more}


_METADATA: Final = _fields(
    *("name", "namespace", "uid", "labels", "annotations", "ownerReferences", "generation"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers"),
)
_NODE_SPEC: Final = _fields("podCIDR", "podCIDRs", "providerID", "taints", "unschedulable")
_NODE_STATUS: Final = _fields(
    "addresses", "capacity", "allocatable", "conditions", "daemonEndpoints", "nodeInfo"
)
_SERVERS: Final = ("/usr/sbin/sshd", "sshd")  # a worker with sshd ends with its job, not by itself
_CONTAINER: Final = _fields("name", "image", "resources", "restartPolicy", command=_SERVERS)
_POD_SPEC: Final = _fields(
    *(
        "nodeName",
        "nodeSelector",
        "affinity",
        "tolerations",
        "topologySpreadConstraints",
        "schedulerName",
        "schedulingGates",
    ),
    *(
        "priority",
        "priorityClassName",
        "preemptionPolicy",
        "overhead",
        "hostNetwork",
        "restartPolicy",
        "terminationGracePeriodSeconds",
    ),
    "resources",
    containers=[_CONTAINER],
    initContainers=[_CONTAINER],
)
_TEMPLATE: Final = {"metadata": _fields("labels", "annotations"), "spec": _POD_SPEC}
# the message may be the program's output
_ENDED: Final = _fields("exitCode", "signal", "reason", "startedAt", "finishedAt")
_STATE: Final = {"waiting": _AS_IS, "running": _AS_IS, "terminated": _ENDED}
_CONTAINER_STATUS: Final = _fields(
    *(
        "name",
        "image",
        "imageID",
        "containerID",
        "ready",
        "started",
        "restartCount",
        "allocatedResources",
    ),
    state=_STATE,
    lastState=_STATE,
)
_POD_STATUS: Final = _fields(
    *(
        "phase",
        "reason",
        "message",
        "conditions",
        "hostIP",
        "hostIPs",
        "podIP",
        "podIPs",
        "startTime",
        "qosClass",
        "nominatedNodeName",
    ),
    containerStatuses=[_CONTAINER_STATUS],
    initContainerStatuses=[_CONTAINER_STATUS],
)
_JOB_SPEC: Final = _fields(
    *(
        "parallelism",
        "completions",
        "backoffLimit",
        "completionMode",
        "suspend",
        "selector",
        "manualSelector",
        "podReplacementPolicy",
    ),
    *("activeDeadlineSeconds", "ttlSecondsAfterFinished"),
    template=_TEMPLATE,
)
_ROLES: Final = {_ANY_KEY: _fields("replicas", "restartPolicy", template=_TEMPLATE)}
_TRAINING_SPEC: Final = _fields(
    *("runPolicy", "slotsPerWorker", "launcherCreationPolicy", "cleanPodPolicy", "suspend"),
    mpiReplicaSpecs=_ROLES,
    tfReplicaSpecs=_ROLES,
    pytorchReplicaSpecs=_ROLES,
)


class KeptKind(Struct, frozen=True):
    """A kind of saved objects.

    `versions` in order of preference; `keep`: fields beside the metadata.
    """

    group: str
    versions: tuple[str, ...]
    kind: str
    plural: str
    keep: Mapping[str, Keep]


_REVISION: Final = {"spec": {"template": {**_TEMPLATE, "$patch": _AS_IS}}}
_WORKLOAD: Final = ("replicas", "selector", "minReadySeconds", "revisionHistoryLimit")


def _workload(kind: str, *fields: str) -> KeptKind:
    spec = _fields(*_WORKLOAD, *fields, template=_TEMPLATE)
    return KeptKind("apps", ("v1",), kind, f"{kind.lower()}s", {"spec": spec, "status": _AS_IS})


def _training(kind: str, *versions: str) -> KeptKind:
    return KeptKind(
        "kubeflow.org",
        versions,
        kind,
        f"{kind.lower()}s",
        {"spec": _TRAINING_SPEC, "status": _AS_IS},
    )


KEPT_KINDS: Final = (
    KeptKind("", ("v1",), "Namespace", "namespaces", _fields("status")),
    KeptKind(
        "scheduling.k8s.io",
        ("v1",),
        "PriorityClass",
        "priorityclasses",
        _fields("value", "globalDefault", "preemptionPolicy"),
    ),
    KeptKind("", ("v1",), "Node", "nodes", {"spec": _NODE_SPEC, "status": _NODE_STATUS}),
    KeptKind(QUOTA_GROUP, (QUOTA_VERSION,), "ElasticQuotaTree", QUOTA_PLURAL, _fields("spec")),
    KeptKind(
        "policy", ("v1",), "PodDisruptionBudget", "poddisruptionbudgets", _fields("spec", "status")
    ),
    _workload("Deployment", "strategy", "paused", "progressDeadlineSeconds"),
    _workload("ReplicaSet"),
    _workload("StatefulSet", "serviceName", "podManagementPolicy", "updateStrategy", "ordinals"),
    _workload("DaemonSet", "updateStrategy"),
    KeptKind(
        "apps",
        ("v1",),
        "ControllerRevision",
        "controllerrevisions",
        {"data": _REVISION, "revision": _AS_IS},
    ),
    KeptKind("batch", ("v1",), "Job", "jobs", {"spec": _JOB_SPEC, "status": _AS_IS}),
    KeptKind(
        "batch",
        ("v1",),
        "CronJob",
        "cronjobs",
        {
            "spec": _fields(
                *(
                    "schedule",
                    "timeZone",
                    "suspend",
                    "concurrencyPolicy",
                    "startingDeadlineSeconds",
                ),
                *("successfulJobsHistoryLimit", "failedJobsHistoryLimit"),
                jobTemplate={"metadata": _fields("labels", "annotations"), "spec": _JOB_SPEC},
            ),
            "status": _AS_IS,
        },
    ),
    _training("MPIJob", "v2beta1", "v1"),
    _training("TFJob", "v1"),
    _training("PyTorchJob", "v1"),
    KeptKind("", ("v1",), "Pod", "pods", {"spec": _POD_SPEC, "status": _POD_STATUS}),
)
"""In an order such that an object's dependencies come first; nodes before pods."""

_BY_KIND: Final = {(f"{kept.group}/" if kept.group else "", kept.kind): kept for kept in KEPT_KINDS}


class WireKeptMeta(Struct, gc=False, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: Any = None
    annotations: Any = None
    owner_references: Any = None
    generation: Any = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Any = None
    finalizers: Any = None


class WireKept(Struct, gc=False, rename="camel"):
    """An object of any saved kind, with the fields that may be kept."""

    metadata: WireKeptMeta
    spec: Any = None
    status: Any = None
    data: Any = None
    revision: Any = None
    value: Any = None
    global_default: Any = None
    preemption_policy: Any = None


def parse_kept(api_version: str, kind: str, wire: WireKept) -> Object | None:
    """The saved form of a list item; the item itself has no kind."""
    return kept_object({**msgspec.to_builtins(wire), "apiVersion": api_version, "kind": kind})


def kept_object(obj: Mapping[str, Any]) -> Object | None:
    """The saved form of the object; None when objects of its kind are not saved."""
    group = "/".join((*str(obj.get("apiVersion", "")).split("/")[:-1], ""))
    kind = _BY_KIND.get((group, str(obj.get("kind", ""))))
    if kind is None:
        return None
    kept: Object = _kept(obj, _fields("apiVersion", "kind", metadata=_METADATA, **kind.keep))
    return kept


def _kept(value: Any, keep: Keep) -> Any:
    """The saved form of a value; a value of an unexpected shape is left out."""
    if isinstance(keep, str):
        return value
    if isinstance(keep, tuple):
        return value[:1] if isinstance(value, list) and value[:1] and value[0] in keep else None
    if isinstance(keep, list):
        return (
            [_kept(item, keep[0]) for item in value if isinstance(item, Mapping)]
            if isinstance(value, list | tuple)
            else None
        )
    if not isinstance(value, Mapping):
        return None
    each = keep.get(_ANY_KEY)
    kept = {
        key: _kept(value[key], each or keep[key])
        for key in (value if each else keep)
        if value.get(key) is not None
    }
    if isinstance(kept.get("annotations"), Mapping):
        kept["annotations"] = {
            key: text for key, text in kept["annotations"].items() if key.startswith(_ANNOTATIONS)
        }
    return {key: found for key, found in kept.items() if found is not None}
