"""Objects of the console: its pod, what leads to it, its store's volume, and the rights by which
users sign in and write.

Without sign-in every client is an administrator, so the console listens on its pod's loopback, and
nothing leads to it. With sign-in it has a Service, and an Ingress if a host is named.
"""

from __future__ import annotations

from typing import Final

from fairlead.model.installation import Installation
from fairlead.settings import (
    CONSOLE_POD,
    CONSOLE_PORT,
    LOOPBACK,
    SIGN_IN_KEY_SECRET,
    USERS_NAMESPACE,
)
from fairlead.wire.data.data_load import DATA_LOAD
from fairlead.wire.data.fluid import RUNTIMES
from fairlead.wire.installation.object_parts import (
    ANYWHERE,
    CLUSTER_CRITICAL,
    IN_CLUSTER,
    KUBE_SYSTEM,
    LINUX,
    LOCKED,
    NON_ROOT,
    Object,
    PartPlace,
    cluster_rights,
    deployment,
    disruption_budget,
    grant,
    labels,
    network_policy,
    port,
    probes,
    pull_secrets,
    requests,
    rights,
    service,
    spread,
)
from fairlead.wire.installation.reading_parts import READER, sources
from fairlead.wire.names import (
    FLUID_DATASETS,
    FLUID_GROUP,
    PEOPLE_GROUP,
    QUOTA_GROUP,
    QUOTA_PLURAL,
    USER_GROUPS,
    USERS,
)

_CONSOLE: Final = CONSOLE_POD
_STATE: Final = "/var/lib/fairlead"
SECRETS: Final = "/etc/fairlead/console"
_READY_PAGE: Final = f"http://{LOOPBACK}:{CONSOLE_PORT}/readyz"
_PATIENT: Final = {"periodSeconds": 2, "timeoutSeconds": 10, "failureThreshold": 300}
_READ_ALL: Final = {
    "exec": {
        "command": [
            "python3",
            "-c",
            f"from urllib.request import urlopen; urlopen('{_READY_PAGE}')",
        ]
    },
    **_PATIENT,
}
"""Until the console has read every source, an update keeps the old one. No kubelet reaches its
loopback, so the probe runs inside, and only at the start: it costs a Python each time.
"""
_PAGE: Final = "page"
"""The name of the port."""


def console(chosen: Installation) -> list[Object]:
    """The boards. With a SQLite file there is one replica; with a database server as many as other
    parts have. Without sign-in a second one would have no clients.
    """
    is_signed = chosen.sign_in.enabled
    has_server = is_signed and bool(chosen.store.url)
    container = {
        "name": "console",
        "image": chosen.image,
        "command": [
            "fairlead",
            "console",
            *(_sign_in_flags(chosen) if is_signed else [f"--listen={LOOPBACK}:{CONSOLE_PORT}"]),
            *sources(chosen),
        ],
        **(_reachable() if is_signed else {"startupProbe": _READ_ALL}),
        **requests("100m", "256Mi"),
        "securityContext": LOCKED,
        **({"volumeMounts": _mounts()} if is_signed else {}),
    }
    pod = {
        "serviceAccountName": READER,
        **pull_secrets(chosen),
        "priorityClassName": CLUSTER_CRITICAL,
        "nodeSelector": LINUX,
        **(spread(_CONSOLE) if has_server else {}),
        # The volume's files are the group's.
        "securityContext": {**NON_ROOT, "fsGroup": 65532} if is_signed else NON_ROOT,
        "containers": [container],
        **({"volumes": _volumes(chosen)} if is_signed else {}),
    }
    place = PartPlace(_CONSOLE, chosen.namespace)
    made = deployment(place, chosen.replicas if has_server else 1, pod)
    if is_signed and chosen.store.size:
        # Two pods must not have one file, and on two nodes they cannot have the volume. `Recreate`
        # would be refused where a Deployment has the defaults of rolling updates already.
        one_by_one = {"maxSurge": 0, "maxUnavailable": 1}
        made["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": one_by_one}
    return [
        made,
        *([disruption_budget(place)] if has_server else ()),
    ]


def _sign_in_flags(chosen: Installation) -> list[str]:
    """Flags with an empty value have no effect."""
    signing, oidc = chosen.sign_in, chosen.sign_in.oidc
    return [
        f"--listen=:{CONSOLE_PORT}",
        "--sign-in=on",
        f"--sign-in-key-secret={chosen.namespace}/{SIGN_IN_KEY_SECRET}",
        f"--secrets-folder={SECRETS}",
        f"--store={chosen.store.url}" if chosen.store.url else f"--store=sqlite:///{_STATE}/store",
        f"--external-url={signing.external_url}",
        f"--base-path={signing.base_path}",
        f"--allowed-host={chosen.ingress.host}",
        f"--trusted-proxy={signing.trusted_proxies}",
        f"--kubeconfig-server={signing.kubeconfig_server}",
        f"--oidc-issuer={oidc.issuer}",
        f"--oidc-client-id={oidc.client_id}",
        f"--oidc-scopes={oidc.scopes}",
        f"--oidc-user-claim={oidc.user_claim}",
        f"--charts={chosen.charts}",
        *(() if chosen.store.url else _usage_flags(chosen)),
    ]


def _usage_flags(chosen: Installation) -> list[str]:
    """The console records usage itself: a SQLite file is for one process."""
    return [
        "--usage-recorder",
        f"--lease-namespace={chosen.namespace}",
        f"--billing-time-zone={chosen.billing_time_zone}",
    ]


def _reachable() -> Object:
    start = {"httpGet": {"path": "/readyz", "port": _PAGE}, **_PATIENT}
    return {**port(_PAGE, CONSOLE_PORT), **probes(_PAGE), "startupProbe": start}


def _mounts() -> list[Object]:
    return [
        {"name": "state", "mountPath": _STATE},
        {"name": "secrets", "mountPath": SECRETS, "readOnly": True},
    ]


def _volumes(chosen: Installation) -> list[Object]:
    claim: Object = {"persistentVolumeClaim": {"claimName": _CONSOLE}}
    return [
        {"name": "state", **(claim if chosen.store.size else {"emptyDir": {}})},
        {"name": "secrets", "secret": {"secretName": chosen.sign_in.secret, "optional": True}},
    ]


def console_access(chosen: Installation) -> list[Object]:
    """What leads to the console, which clients may come, and the volume of its store."""
    place = PartPlace(_CONSOLE, chosen.namespace)
    if not chosen.sign_in.enabled:
        # `kubectl port-forward` reaches the loopback through the node.
        return network_policy(place, chosen)
    has_host = bool(chosen.ingress.host)
    # An Ingress controller may be no pod, or use its node's network.
    clients = ANYWHERE if has_host else IN_CLUSTER
    return [
        *([_claim(place, chosen)] if chosen.store.size else ()),
        service(place, _PAGE, CONSOLE_PORT, is_labelled=True),
        *([_ingress(place, chosen)] if has_host else ()),
        *network_policy(place, chosen, CONSOLE_PORT, clients=clients),
    ]


def _claim(place: PartPlace, chosen: Installation) -> Object:
    """The volume of the store's SQLite file."""
    named = chosen.store.storage_class
    spec: Object = {
        "accessModes": ["ReadWriteOnce"],
        **({"storageClassName": f"{named}"} if named else {}),
        "resources": {"requests": {"storage": f"{chosen.store.size}"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {**place.meta, "labels": labels(place.name)},
        "spec": spec,
    }


def _ingress(place: PartPlace, chosen: Installation) -> Object:
    """All paths of the host below the base path."""
    asked = chosen.ingress
    backend = {"service": {"name": place.name, "port": {"name": _PAGE}}}
    path = {"path": chosen.sign_in.base_path, "pathType": "Prefix", "backend": backend}
    tls = [{"hosts": [f"{asked.host}"], "secretName": f"{asked.tls_secret}"}]
    spec: Object = {
        **({"ingressClassName": f"{asked.class_name}"} if asked.class_name else {}),
        **({"tls": tls} if asked.tls_secret else {}),
        "rules": [{"host": f"{asked.host}", "http": {"paths": [path]}}],
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {**place.meta, "labels": labels(place.name)},
        "spec": spec,
    }


def console_sign_in(chosen: Installation) -> list[Object]:
    """Rights by which users sign in: whose token it is, what its user may do, the key of cookies,
    the quota tree, and operations on data sets. RBAC cannot limit `create` to a name: a policy
    does.
    """
    place = PartPlace(READER, chosen.namespace)
    asked = [
        grant("authentication.k8s.io", "tokenreviews", "create"),
        grant("authorization.k8s.io", "subjectaccessreviews", "create"),
    ]
    key = [grant("", "secrets", "get", SIGN_IN_KEY_SECRET), grant("", "secrets", "create")]
    tree = [grant(QUOTA_GROUP, QUOTA_PLURAL, "create get patch")]
    # Operations: what their steps write, and their records and Leases.
    made = " ".join((FLUID_DATASETS, DATA_LOAD[2], *(each[2] for each in RUNTIMES)))
    data = [
        grant(FLUID_GROUP, made, "create get delete"),
        grant("", "persistentvolumeclaims persistentvolumes pods namespaces", "get"),
        grant("apps", "deployments", "get"),
        grant("storage.k8s.io", "csinodes", "list"),
    ]
    records = [
        grant("", "configmaps", "create get list patch delete"),
        grant("coordination.k8s.io", "leases", "create get update"),
    ]
    return [
        *cluster_rights(f"{_CONSOLE}-sign-in", place, asked),
        *rights(f"{_CONSOLE}-key", place, chosen.namespace, key),
        *rights(f"{_CONSOLE}-tree", place, KUBE_SYSTEM, tree),
        *cluster_rights(f"{_CONSOLE}-data", place, data),
        *rights(f"{_CONSOLE}-operations", place, chosen.namespace, records),
    ]


def console_people(chosen: Installation) -> list[Object]:
    """Rights in the users namespace: users, groups, credentials, and to act as a user, so that the
    API server judges what a user does on the pages. A policy limits Secrets and tokens.
    """
    place = PartPlace(READER, chosen.namespace)
    rules = [
        grant(PEOPLE_GROUP, f"{USERS} {USER_GROUPS}", "list watch create patch delete"),
        grant("", "secrets", "get list create patch delete"),
        grant("", "serviceaccounts", "get list delete impersonate"),
        grant("", "serviceaccounts/token", "create"),
    ]
    return rights(f"{_CONSOLE}-people", place, USERS_NAMESPACE, rules)
