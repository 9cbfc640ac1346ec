"""Builders of what the objects of several parts have in common: accounts, rights, pods, workloads.

Words in one text are separated by spaces: `grant("apps", "deployments replicasets", "list watch")`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fairlead.model.installation import Installation
from fairlead.settings import PART_LABEL

Object = dict[str, Any]

KUBE_SYSTEM: Final = "kube-system"
PART_OF: Final = {"app.kubernetes.io/part-of": "fairlead"}
POD_SECURITY: Final = "pod-security.kubernetes.io"
RESTRICTED: Final[Object] = {
    f"{POD_SECURITY}/{mode}": "restricted" for mode in ("enforce", "audit", "warn")
}
"""Labels of a namespace that admits only pods that need nothing of their node."""
NON_ROOT: Final[Object] = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""Security context of a pod that needs nothing of its node."""
LOCKED: Final[Object] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
"""Security context of such a pod's container."""
TRACING_ROOT: Final[Object] = {
    "runAsUser": 0,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE"]},
}
"""Security context of a container that uses its node: the kubelet's directories belong to root;
SYS_PTRACE reads the mounts of other users' processes.
"""
POD_NAME: Final[Object] = {
    "name": "POD_NAME",
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
}
"""The identity in a Lease: a replica that was restarted acquires its Lease again soon."""
NODE_NAME: Final[Object] = {
    "name": "NODE_NAME",
    "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}},
}
CLUSTER_CRITICAL: Final = "system-cluster-critical"
"""The priority class of each server of Fairlead. With a lower one than the others have, the console
would give way to their new pods while they are upgraded on nodes that are full.
"""
READY_LIMITS: Final = {"timeoutSeconds": 5}
LIVE_LIMITS: Final = {"timeoutSeconds": 5, "failureThreshold": 6}
START_LIMITS: Final = {"timeoutSeconds": 5, "periodSeconds": 2, "failureThreshold": 150}
"""Of probes: five minutes to start, then one minute without an answer before a restart. With the
defaults of Kubernetes a node that had too little CPU for a while ended servers while they started.
"""
LINUX: Final = {"kubernetes.io/os": "linux"}
CONTROL_PLANE: Final[Object] = {
    "key": "node-role.kubernetes.io/control-plane",
    "operator": "Exists",
    "effect": "NoSchedule",
}
"""Toleration for machines of the control plane."""
ALL_CARDS: Final = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
DRIVER_VARIABLES: Final = (
    ALL_CARDS,
    {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
)
"""The NVIDIA runtime adds the driver's library and all cards; the process runs nothing on them."""
_RBAC: Final = "rbac.authorization.k8s.io"


class PartPlace(Struct, frozen=True):
    """A name in a namespace: of a part's objects, and of the account of its pods."""

    name: str
    namespace: str

    @property
    def meta(self) -> Object:
        return {"name": self.name, "namespace": self.namespace}


def labels(name: str) -> Object:
    return {PART_LABEL: name, **PART_OF}


def account(place: PartPlace, *, has_token: bool = True) -> Object:
    """A ServiceAccount; without a token its pods cannot ask the API server."""
    found: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place.meta}
    return found if has_token else {**found, "automountServiceAccountToken": False}


def grant(groups: str, resources: str, verbs: str, names: str = "") -> Object:
    """A rule of a role. `groups`: "" is the core group.

    >>> grant("", "leases", "get update", "fairlead-quota")["resourceNames"]
    ['fairlead-quota']
    """
    found: Object = {"apiGroups": groups.split() or [""], "resources": resources.split()}
    if names:
        found["resourceNames"] = names.split()
    return {**found, "verbs": verbs.split()}


def lease_grants(name: str) -> list[Object]:
    """Rights to hold one Lease. RBAC cannot limit `create` to a name."""
    group = "coordination.k8s.io"
    return [grant(group, "leases", "create"), grant(group, "leases", "get update", name)]


def cluster_rights(
    name: str,
    owner: PartPlace,
    rules: Sequence[Object],
    *,
    binding: str = "",
    is_labelled: bool = False,
) -> list[Object]:
    """A ClusterRole `name` with its rules, bound to the account `owner`.

    `binding`: name of the binding; "" = the role's.
    """
    role: Object = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, **_labelled(name, is_labelled)},
        "rules": list(rules),
    }
    return [role, bound_cluster_role(binding or name, name, owner, is_labelled=is_labelled)]


def bound_cluster_role(
    name: str, role: str, owner: PartPlace, *, is_labelled: bool = False
) -> Object:
    """The binding `name` of the ClusterRole `role`, which may be one of the cluster's own."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, **_labelled(name, is_labelled)},
        **_bound("ClusterRole", role, owner),
    }


def rights(
    name: str,
    owner: PartPlace,
    namespace: str,
    rules: Sequence[Object],
    *,
    binding: str = "",
    is_labelled: bool = False,
) -> list[Object]:
    """A Role `name` in a namespace, bound there to the account `owner`."""
    role: Object = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "Role",
        "metadata": {"name": name, "namespace": namespace, **_labelled(name, is_labelled)},
        "rules": list(rules),
    }
    bound = bound_role(binding or name, name, owner, namespace, is_labelled=is_labelled)
    return [role, bound]


def bound_role(
    name: str, role: str, owner: PartPlace, namespace: str, *, is_labelled: bool = False
) -> Object:
    """The binding `name` of the Role `role` of a namespace."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace, **_labelled(name, is_labelled)},
        **_bound("Role", role, owner),
    }


def withheld_gpu_rights(name: str, owner: PartPlace, *, binding: str = "") -> list[Object]:
    """Rights to follow the ConfigMaps `unhealthy-gpu-<node>`, by which an operator withholds GPUs.

    RBAC knows no prefix of names, so the account may read every ConfigMap of kube-system.
    """
    rules = [grant("", "configmaps", "list watch")]
    return rights(name, owner, KUBE_SYSTEM, rules, binding=binding)


def pull_secrets(chosen: Installation) -> Object:
    """What a pod names the Secrets of its namespace by, with which its images are pulled."""
    if not chosen.pull_secrets:
        return {}
    return {"imagePullSecrets": [{"name": each} for each in chosen.pull_secrets]}


def deployment(place: PartPlace, replicas: int, pod: Mapping[str, Any]) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**place.meta, "labels": labels(place.name)},
        "spec": {"replicas": replicas, **_template(place.name, pod)},
    }


def daemon_set(
    place: PartPlace, pod: Mapping[str, Any], *, most_unavailable: str | None = None
) -> Object:
    """`most_unavailable`: nodes that an update takes at a time; None = Kubernetes' default."""
    spec = _template(place.name, pod)
    if most_unavailable:
        rolling = {"maxUnavailable": most_unavailable}
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {**place.meta, "labels": labels(place.name)},
        "spec": spec,
    }


def disruption_budget(place: PartPlace) -> Object:
    """One replica at a time may be evicted, and the only one, too; those that are not ready always,
    so that a pod that never becomes ready does not keep its node from being drained.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": place.meta,
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": {PART_LABEL: place.name}},
        },
    }


IN_CLUSTER: Final[tuple[Object, ...]] = ({"namespaceSelector": {}},)
"""Pods of every namespace: where Prometheus runs is not known."""
ANYWHERE: Final[tuple[Object, ...]] = ()
"""Every client: no selector matches the API server, which is no pod on most clusters."""


def network_policy(
    place: PartPlace, chosen: Installation, *ports: int, clients: Sequence[Object] = IN_CLUSTER
) -> list[Object]:
    """Only `clients` reach the pods of a part, on these ports; without a port no client does.

    Outgoing connections stay open: where the API server, DNS and Prometheus are is not known. No
    object if the installation has no NetworkPolicies.
    """
    if not chosen.network_policies:
        return []
    allowed: Object = {"ports": [{"protocol": "TCP", "port": number} for number in ports]}
    if clients:
        allowed["from"] = list(clients)
    spec: Object = {
        "podSelector": {"matchLabels": {PART_LABEL: place.name}},
        "policyTypes": ["Ingress"],
    }
    if ports:
        spec["ingress"] = [allowed]
    return [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {**place.meta, "labels": labels(place.name)},
            "spec": spec,
        }
    ]


def service(place: PartPlace, port_name: str, port: int, *, is_labelled: bool = False) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**place.meta, **_labelled(place.name, is_labelled)},
        "spec": {
            "selector": {PART_LABEL: place.name},
            "ports": [{"name": port_name, "port": port, "targetPort": port_name}],
        },
    }


def spread(name: str) -> Object:
    """Replicas are on different nodes, as far as there are nodes that take them: a node with a
    taint is none, so that the replicas of a cluster with one node left are all there.

    Those of an earlier template do not count, or in a rolling update both new ones could come to
    one node.
    """
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": {PART_LABEL: name}},
        "matchLabelKeys": ["pod-template-hash"],
    }
    return {"topologySpreadConstraints": [constraint]}


def controller_pod(place: PartPlace, chosen: Installation, number: int, needs: Object) -> Object:
    """The pod of a controller, which runs the command of its name. `number`: the port of its
    metrics; `needs`: see `requests`.
    """
    container = {
        "name": "controller",
        "image": chosen.image,
        "command": [
            "fairlead",
            place.name.removeprefix("fairlead-"),
            f"--listen=:{number}",
            "--identity=$(POD_NAME)",
            f"--lease-namespace={chosen.namespace}",
            *namespace_flags(chosen),
        ],
        "env": [POD_NAME],
        **port("metrics", number),
        **probes("metrics"),
        **needs,
        "securityContext": LOCKED,
    }
    return {
        "serviceAccountName": place.name,
        **pull_secrets(chosen),
        "priorityClassName": CLUSTER_CRITICAL,
        "nodeSelector": LINUX,
        "tolerations": [CONTROL_PLANE],
        **spread(place.name),
        "securityContext": NON_ROOT,
        "containers": [container],
    }


def namespace_flags(chosen: Installation) -> list[str]:
    return [f"--namespace={chosen.namespace}", f"--node-namespace={chosen.node_namespace}"]


def probes(port: str | int, live: str = "/healthz", **get: str) -> Object:
    """Of a server. `live`: the path that shows whether it works. `get`: more fields of the request.

    The others begin when the first has passed.
    """
    is_live = {"httpGet": {**get, "path": live, "port": port}}
    return {
        "startupProbe": {**is_live, **START_LIMITS},
        "readinessProbe": {"httpGet": {**get, "path": "/readyz", "port": port}, **READY_LIMITS},
        "livenessProbe": {**is_live, **LIVE_LIMITS},
    }


def port(name: str, number: int) -> Object:
    return {"ports": [{"name": name, "containerPort": number}]}


def requests(cpu: str, memory: str, limit: str = "") -> Object:
    """`limit`: of memory. There is no limit of CPU: a throttled server answers late."""
    found: Object = {"requests": {"cpu": cpu, "memory": memory}}
    if limit:
        found["limits"] = {"memory": limit}
    return {"resources": found}


def gpu_nodes() -> Object:
    """Affinity to nodes with GPUs, by any of three labels.

    A node with the label `fairlead.io/gpu-maintenance` is left: a program that resets a card must
    be the only one that has it open.
    """
    in_use = {"key": "fairlead.io/gpu-maintenance", "operator": "DoesNotExist"}
    marks: list[Object] = [
        {"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]},
        {"key": "aliyun.accelerator/nvidia_name", "operator": "Exists"},
        {"key": "cgpu", "operator": "Exists"},
    ]
    terms = [{"matchExpressions": [mark, in_use]} for mark in marks]
    selector = {"nodeSelectorTerms": terms}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}},
        "tolerations": [{"operator": "Exists"}],
    }


def host_folders(*rows: tuple[str, str, str, bool]) -> tuple[list[Object], list[Object]]:
    """Mounts and volumes of paths of the node: name, path, type ("" = it exists), read only."""
    mounts: list[Object] = []
    volumes: list[Object] = []
    for name, path, type_, is_read_only in rows:
        mount: Object = {"name": name, "mountPath": path}
        mounts.append({**mount, "readOnly": True} if is_read_only else mount)
        host = {"path": path, "type": type_} if type_ else {"path": path}
        volumes.append({"name": name, "hostPath": host})
    return mounts, volumes


def _labelled(name: str, is_labelled: bool) -> Object:
    return {"labels": labels(name)} if is_labelled else {}


def _bound(kind: str, role: str, owner: PartPlace) -> Object:
    subject = {"kind": "ServiceAccount", **owner.meta}
    return {
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
        "subjects": [subject],
    }


def _template(name: str, pod: Mapping[str, Any]) -> Object:
    return {
        "selector": {"matchLabels": {PART_LABEL: name}},
        "template": {"metadata": {"labels": labels(name)}, "spec": dict(pod)},
    }
