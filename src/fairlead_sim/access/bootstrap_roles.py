"""The roles and bindings that every new cluster has.

Of the real server's some seventy ClusterRoles it has those that users need, and those that let the
other roles work. Its components' own roles (`system:controller:…`, `system:node`) are missing,
since no component logs in here. Rules are word for word the real ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead_sim.objects.watch_log import Object

_READ = "get list watch"
_WRITE = "create delete deletecollection patch update"
_BOTH = "create delete deletecollection get list patch update watch"

Rule = tuple[str, str, str]
"""Verbs, groups and resources, each a list with spaces; `core` is the group without a name."""

_ADMIN: tuple[Rule, ...] = (
    ("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    (_BOTH, "rbac.authorization.k8s.io", "rolebindings roles"),
)
_EDIT: tuple[Rule, ...] = (
    (_READ, "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    ("impersonate", "core", "serviceaccounts"),
    (_WRITE, "core", "pods pods/attach pods/exec pods/portforward pods/proxy"),
    ("create", "core", "pods/eviction"),
    (
        _WRITE,
        "core",
        "configmaps persistentvolumeclaims replicationcontrollers "
        "replicationcontrollers/scale secrets serviceaccounts services services/proxy",
    ),
    ("create", "core", "serviceaccounts/token"),
    (_WRITE, "core events.k8s.io", "events"),
    (
        _WRITE,
        "apps",
        (
            "daemonsets deployments deployments/rollback deployments/scale replicasets "
            "replicasets/scale statefulsets statefulsets/scale"
        ),
    ),
    (_WRITE, "autoscaling", "horizontalpodautoscalers"),
    (_WRITE, "batch", "cronjobs jobs"),
    (
        _WRITE,
        "extensions",
        "daemonsets deployments deployments/rollback deployments/scale ingresses "
        "networkpolicies replicasets replicasets/scale "
        "replicationcontrollers/scale",
    ),
    (_WRITE, "policy", "poddisruptionbudgets"),
    (_WRITE, "networking.k8s.io", "ingresses networkpolicies"),
    (_BOTH, "coordination.k8s.io", "leases"),
    (_WRITE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
)
_VIEW: tuple[Rule, ...] = (
    (
        _READ,
        "core",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
        "replicationcontrollers "
        "replicationcontrollers/scale serviceaccounts services services/status",
    ),
    (
        _READ,
        "core",
        (
            "bindings limitranges namespaces/status pods/log pods/status "
            "replicationcontrollers/status resourcequotas resourcequotas/status"
        ),
    ),
    (_READ, "core", "namespaces"),
    (_READ, "core events.k8s.io", "events"),
    (_READ, "discovery.k8s.io", "endpointslices"),
    (
        _READ,
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale "
        "deployments/status replicasets replicasets/scale "
        "replicasets/status statefulsets statefulsets/scale statefulsets/status",
    ),
    (_READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    (_READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    (
        _READ,
        "extensions",
        "daemonsets daemonsets/status deployments deployments/scale deployments/status "
        "ingresses ingresses/status networkpolicies "
        "replicasets replicasets/scale replicasets/status replicationcontrollers/scale",
    ),
    (_READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    (_READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
    (_READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
)
_BASIC: tuple[Rule, ...] = (
    ("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
    ("create", "authentication.k8s.io", "selfsubjectreviews"),
)
_DELEGATOR: tuple[Rule, ...] = (
    ("create", "authentication.k8s.io", "tokenreviews"),
    ("create", "authorization.k8s.io", "subjectaccessreviews"),
)
_PUBLIC_PATHS = "/healthz /livez /readyz /version /version/"
_DISCOVERY_PATHS = (
    "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"
)
_MONITORING_PATHS = (
    "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz"
)

_GROUP = "rbac.authorization.k8s.io"
_AGGREGATE = f"{_GROUP}/aggregate-to-"
_DEFAULTS = {"kubernetes.io/bootstrapping": "rbac-defaults"}


def bootstrap_objects() -> Iterator[Object]:
    """ClusterRoles, then ClusterRoleBindings.

    Those that are gathered from others (`admin`, `edit`, `view`) are the last ClusterRoles.
    """
    yield _role("cluster-admin", [*_rules((("*", "*", "*"),)), _paths("*", "*")])
    yield _role("system:aggregate-to-admin", _rules(_ADMIN), part_of="admin")
    yield _role("system:aggregate-to-edit", _rules(_EDIT), part_of="edit")
    yield _role("system:aggregate-to-view", _rules(_VIEW), part_of="view")
    yield _role("system:auth-delegator", _rules(_DELEGATOR))
    yield _role("system:basic-user", _rules(_BASIC))
    yield _role("system:discovery", [_paths("get", _DISCOVERY_PATHS)])
    yield _role(
        "system:monitoring",
        [_paths("get", _MONITORING_PATHS), *_rules((("get", "core", "nodes/metrics"),))],
    )
    yield _role("system:public-info-viewer", [_paths("get", _PUBLIC_PATHS)])
    yield _gathered("view", part_of="edit")
    yield _gathered("edit", part_of="admin")
    yield _gathered("admin")
    yield _binding("cluster-admin", "system:masters")
    yield _binding("system:basic-user", "system:authenticated")
    yield _binding("system:discovery", "system:authenticated")
    yield _binding("system:monitoring", "system:monitoring")
    yield _binding("system:public-info-viewer", "system:authenticated", "system:unauthenticated")


def _rules(rules: tuple[Rule, ...]) -> list[Object]:
    return [
        {
            "verbs": verbs.split(),
            "apiGroups": ["" if group == "core" else group for group in groups.split()],
            "resources": resources.split(),
        }
        for verbs, groups, resources in rules
    ]


def _paths(verb: str, paths: str) -> Object:
    return {"verbs": [verb], "nonResourceURLs": paths.split()}


def _metadata(name: str, part_of: str = "") -> Object:
    labels = {**_DEFAULTS, **({f"{_AGGREGATE}{part_of}": "true"} if part_of else {})}
    return {
        "name": name,
        "labels": labels,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }


def _role(name: str, rules: list[Object], part_of: str = "") -> Object:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": _metadata(name, part_of),
        "rules": rules,
    }


def _gathered(name: str, part_of: str = "") -> Object:
    gathers = {"clusterRoleSelectors": [{"matchLabels": {f"{_AGGREGATE}{name}": "true"}}]}
    return {**_role(name, [], part_of), "aggregationRule": gathers}


def _binding(role: str, *groups: str) -> Object:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _metadata(role),
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "Group", "apiGroup": _GROUP, "name": group} for group in groups],
    }
