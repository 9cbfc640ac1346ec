"""Which rights a user has, as ClusterRoles: the one home of the table
docs/spec/people.md#rights.

The people controller binds these roles, the installation creates them, and tests ask a real API
server for each cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.model.access import PolicyRule
from fairlead.model.people.rows import UserRole

RESEARCHER_ROLE: Final = "fairlead-researcher"
"""Bound in each namespace of the user's leaves."""
RESEARCHER_CLUSTER_ROLE: Final = "fairlead-researcher-cluster"
"""Bound cluster-wide to every user."""
ADMIN_ROLE: Final = "fairlead-admin"
"""Bound cluster-wide to administrators."""
CREDENTIALS_ROLE: Final = "fairlead-credentials"
"""Bound in the users namespace to administrators: they issue and revoke credentials."""

READ: Final = ("get", "list", "watch")
WRITE: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
Resources = Mapping[str, str]
"""By API group, resources separated by spaces; several groups are separated by spaces, too."""

WORK: Final[Resources] = {
    "": "pods services configmaps persistentvolumeclaims",
    "apps": "deployments replicasets statefulsets",
    "batch": "jobs cronjobs",
    "kubeflow.org": "mpijobs notebooks pytorchjobs tfjobs",
    "ray.io": "rayclusters rayjobs",
    "apps.kubedl.io": "crons",
    "batch.volcano.sh": "jobs",
    "kai.alibabacloud.com": "trainingjobs",
    "serving.kserve.io": "inferenceservices",
    "sparkoperator.k8s.io": "sparkapplications",
    "scheduling.volcano.sh scheduling.x-k8s.io": "podgroups",
}
"""What users work with. A researcher writes it in the own namespaces, an administrator anywhere."""
FLUID: Final[Resources] = {
    "data.fluid.io": "alluxioruntimes dataloads datasets efcruntimes goosefsruntimes jindoruntimes "
    "juicefsruntimes thinruntimes vineyardruntimes",
}
"""Data sets, what caches them, and their preheats."""
SECRETS: Final[Resources] = {"": "secrets"}
SCALES: Final[Resources] = {"apps": "deployments/scale replicasets/scale statefulsets/scale"}
LOGS: Final[Resources] = {"": "pods/log"}
STREAMS: Final[Resources] = {"": "pods/attach pods/exec pods/portforward"}
OBSERVED: Final[Resources] = {
    "": "events resourcequotas",
    "events.k8s.io": "events",
    "policy": "poddisruptionbudgets",
    **FLUID,
}
"""What a researcher reads in the own namespaces."""
SHARED: Final[Resources] = {
    "": "nodes",
    "scheduling.k8s.io": "priorityclasses",
    "storage.k8s.io": "storageclasses",
    "scheduling.sigs.k8s.io": "elasticquotatrees",
}
"""What every user reads cluster-wide."""
ADMINISTERED: Final[Resources] = {
    "fairlead.io": "usergroups users",
    "scheduling.sigs.k8s.io": "elasticquotatrees",
    "": "namespaces persistentvolumes",
    "policy": "poddisruptionbudgets",
    **FLUID,
}
"""What an administrator writes."""
CORDONED: Final[Resources] = {"": "nodes"}
"""What an administrator patches and neither creates nor deletes."""
OVERSEEN: Final[Resources] = {
    "": "events resourcequotas",
    "events.k8s.io": "events",
    "apps": "daemonsets",
    "apiextensions.k8s.io": "customresourcedefinitions",
    "rbac.authorization.k8s.io": "clusterrolebindings clusterroles rolebindings roles",
}
"""What an administrator reads."""

_SCALING: Final = ("get", "patch", "update")
_STREAMING: Final = ("create", "get")


def _rules(resources: Resources, verbs: tuple[str, ...]) -> Iterator[PolicyRule]:
    for groups, names in resources.items():
        yield PolicyRule(verbs, tuple(groups.split()) or ("",), tuple(names.split()))


_USED: Final = (
    *_rules(WORK, WRITE),
    *_rules(SCALES, _SCALING),
    *_rules(LOGS, ("get",)),
    *_rules(STREAMS, _STREAMING),
)
ROLES: Final[Mapping[str, tuple[PolicyRule, ...]]] = {
    RESEARCHER_ROLE: (*_USED, *_rules(SECRETS, WRITE), *_rules(OBSERVED, READ)),
    RESEARCHER_CLUSTER_ROLE: tuple(_rules(SHARED, READ)),
    ADMIN_ROLE: (
        *_USED,
        *_rules(ADMINISTERED, WRITE),
        *_rules(CORDONED, ("patch",)),
        *_rules(OVERSEEN, READ),
    ),
    CREDENTIALS_ROLE: (
        PolicyRule(("create", "delete", "get", "list", "patch"), ("",), ("secrets",)),
        PolicyRule(("delete", "get", "list"), ("",), ("serviceaccounts",)),
        PolicyRule(("create",), ("",), ("serviceaccounts/token",)),
        # of a credential that `fairlead login` renews
        PolicyRule(("create",), ("rbac.authorization.k8s.io",), ("rolebindings", "roles")),
    ),
}
"""The rules of each ClusterRole."""


def cluster_roles_of(role: UserRole) -> tuple[str, ...]:
    """The ClusterRoles that are bound cluster-wide to a user with this role.

    >>> cluster_roles_of(UserRole.RESEARCHER)
    ('fairlead-researcher-cluster',)
    """
    if role is UserRole.ADMIN:
        return (RESEARCHER_CLUSTER_ROLE, ADMIN_ROLE)
    return (RESEARCHER_CLUSTER_ROLE,)
