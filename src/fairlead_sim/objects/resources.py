"""The kinds that the simulated cluster serves, one constant each, in discovery order.

Only what stands here or in `stored_kinds.toml` can be stored.
"""

from __future__ import annotations

from typing import Any

from fairlead.wire.names import FLUID_GROUP
from fairlead_sim.objects.stored_kinds import STORED, stored_kind
from fairlead_sim.schema.resource import ALL_VERBS, ResourceKind

_ALL = ("all",)
_STATUS = ("status",)
_STATUS_SCALE = ("scale", "status")
_kinds: list[ResourceKind] = []
_installed_kinds: list[ResourceKind] = []


def _of(
    group: str, version: str, kind: str, plural: str, short: tuple[str, ...] = (), **more: Any
) -> ResourceKind:
    _kinds.append(ResourceKind(group, version, kind, plural, kind.lower(), short, **more))
    return _kinds[-1]


def _core(kind: str, plural: str, short: tuple[str, ...] = (), **more: Any) -> ResourceKind:
    return _of("", "v1", kind, plural, short, **more)


def _installed(kind: str, plural: str, singular: str, **more: Any) -> ResourceKind:
    _installed_kinds.append(
        ResourceKind(FLUID_GROUP, "v1alpha1", kind, plural, singular, is_custom=True, **more)
    )
    return _installed_kinds[-1]


CONFIG_MAPS = _core("ConfigMap", "configmaps", ("cm",), has_generation=False)
ENDPOINTS = _core("Endpoints", "endpoints", ("ep",), has_generation=False)
EVENTS = _core("Event", "events", ("ev",), has_generation=False)
NAMESPACES = _core(
    "Namespace",
    "namespaces",
    ("ns",),
    namespaced=False,
    subresources=_STATUS,
    verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
    has_generation=False,
)
NODES = _core(
    "Node", "nodes", ("no",), namespaced=False, subresources=_STATUS, has_generation=False
)
PERSISTENT_VOLUME_CLAIMS = _core(
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
    ("pvc",),
    subresources=_STATUS,
    has_generation=False,
)
PERSISTENT_VOLUMES = _core(
    "PersistentVolume",
    "persistentvolumes",
    ("pv",),
    namespaced=False,
    subresources=_STATUS,
    has_generation=False,
)
PODS = _core(
    "Pod", "pods", ("po",), categories=_ALL, subresources=("binding", "eviction", "log", "status")
)
SECRETS = _core("Secret", "secrets", has_generation=False)
SERVICE_ACCOUNTS = _core(
    "ServiceAccount", "serviceaccounts", ("sa",), subresources=("token",), has_generation=False
)
SERVICES = _core(
    "Service", "services", ("svc",), categories=_ALL, subresources=_STATUS, has_generation=False
)

CUSTOM_RESOURCE_DEFINITIONS = _of(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    ("crd", "crds"),
    namespaced=False,
    categories=("api-extensions",),
    subresources=_STATUS,
)

CONTROLLER_REVISIONS = _of(
    "apps", "v1", "ControllerRevision", "controllerrevisions", has_generation=False
)
DAEMON_SETS = _of(
    "apps", "v1", "DaemonSet", "daemonsets", ("ds",), categories=_ALL, subresources=_STATUS
)
DEPLOYMENTS = _of(
    "apps",
    "v1",
    "Deployment",
    "deployments",
    ("deploy",),
    categories=_ALL,
    subresources=_STATUS_SCALE,
)
REPLICA_SETS = _of(
    "apps", "v1", "ReplicaSet", "replicasets", ("rs",), categories=_ALL, subresources=_STATUS_SCALE
)
STATEFUL_SETS = _of(
    "apps",
    "v1",
    "StatefulSet",
    "statefulsets",
    ("sts",),
    categories=_ALL,
    subresources=_STATUS_SCALE,
)

CRON_JOBS = _of(
    "batch", "v1", "CronJob", "cronjobs", ("cj",), categories=_ALL, subresources=_STATUS
)
JOBS = _of("batch", "v1", "Job", "jobs", categories=_ALL, subresources=_STATUS)

LEASES = _of("coordination.k8s.io", "v1", "Lease", "leases", has_generation=False)

MPI_JOBS = _of("kubeflow.org", "v2beta1", "MPIJob", "mpijobs", subresources=_STATUS, is_custom=True)
PYTORCH_JOBS = _of(
    "kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", subresources=_STATUS_SCALE, is_custom=True
)
TF_JOBS = _of("kubeflow.org", "v1", "TFJob", "tfjobs", subresources=_STATUS, is_custom=True)

RAY_CLUSTERS = _of(
    "ray.io",
    "v1",
    "RayCluster",
    "rayclusters",
    subresources=_STATUS,
    categories=_ALL,
    is_custom=True,
)
RAY_JOBS = _of(
    "ray.io", "v1", "RayJob", "rayjobs", subresources=_STATUS, categories=_ALL, is_custom=True
)

POD_DISRUPTION_BUDGETS = _of(
    "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", ("pdb",), subresources=_STATUS
)

_RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLE_BINDINGS = _of(
    _RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False, has_generation=False
)
CLUSTER_ROLES = _of(
    _RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False, has_generation=False
)
ROLE_BINDINGS = _of(_RBAC, "v1", "RoleBinding", "rolebindings", has_generation=False)
ROLES = _of(_RBAC, "v1", "Role", "roles", has_generation=False)

PRIORITY_CLASSES = _of(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", ("pc",), namespaced=False
)
ELASTIC_QUOTA_TREES = _of(
    "scheduling.sigs.k8s.io",
    "v1beta1",
    "ElasticQuotaTree",
    "elasticquotatrees",
    ("eqtree", "eqtrees"),
    subresources=_STATUS,
    is_custom=True,
)

CRONS = _of("apps.kubedl.io", "v1alpha1", "Cron", "crons", subresources=_STATUS, is_custom=True)

STORAGE_CLASSES = _of(
    "storage.k8s.io",
    "v1",
    "StorageClass",
    "storageclasses",
    ("sc",),
    namespaced=False,
    has_generation=False,
)

DATASETS = _installed("Dataset", "datasets", "dataset", subresources=_STATUS)
ALLUXIO_RUNTIMES = _installed(
    "AlluxioRuntime", "alluxioruntimes", "alluxioruntime", subresources=_STATUS_SCALE
)
DATA_LOADS = _installed("DataLoad", "dataloads", "dataload", subresources=_STATUS)

EVENTS_V1 = _of("events.k8s.io", "v1", "Event", "events", ("ev",), stored_as=EVENTS)

RESOURCES: tuple[ResourceKind, ...] = (*_kinds, *STORED)
INSTALLED_KINDS: tuple[ResourceKind, ...] = tuple(_installed_kinds)
"""Kinds with controllers here that no new cluster has: an installation brings their definitions."""
CSI_NODES = stored_kind("csinodes")
ENDPOINT_SLICES = stored_kind("endpointslices")
POD_TEMPLATES = stored_kind("podtemplates")
REPLICATION_CONTROLLERS = stored_kind("replicationcontrollers")
