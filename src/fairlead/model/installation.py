"""What an operator chooses about an installation of Fairlead: parts, images, replicas, addresses.

All objects of an installation follow from this one value (`wire/installation`). A field's default
is what `deploy/*.yaml` show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

SYSTEM_NAMESPACE: Final = "fairlead-system"
"""The namespace of an installation that names no other: of pods that need nothing of their node."""
NODE_NAMESPACE: Final = "fairlead-nodes"
"""The same for pods that use paths, processes or the network of their node."""
INSTALLATION_LABEL: Final = "fairlead.io/installation"
"""The label of both namespaces, by which an installation is found.

Its value is SYSTEM_PART or NODE_PART.
"""
SYSTEM_PART: Final = "system"
NODE_PART: Final = "nodes"
HELM_NAMESPACE: Final = "meta.helm.sh/release-namespace"
"""The annotation in which Helm writes the namespace of its release on each object of it.

Helm makes the release's namespace without a label; the chart makes that of the nodes' pods.
"""

OLDEST_VERSION: Final = "0.1.0"
"""The oldest version that understands all that this one writes: objects, annotations, Leases and
files of nodes. A change that older versions would misread raises it.
"""

DEFAULT_IMAGE: Final = "fairlead:0.1.0"
DEFAULT_KUBE_SCHEDULER_IMAGE: Final = "registry.k8s.io/kube-scheduler:v1.36.3"

Image = Annotated[str, Meta(min_length=1, pattern=r"^\S+$")]
Namespace = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
SecretName = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]
SecretNames = Annotated[tuple[SecretName, ...], Meta(max_length=16)]
Replicas = Annotated[int, Meta(ge=1, le=10)]
HostName = Annotated[str, Meta(pattern=r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$")]
"""A name of DNS, or ""."""
TimeZone = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_+/-]{1,64}$")]
PagePath = Annotated[str, Meta(pattern=r"^/([-A-Za-z0-9._~]+/)*$")]
"""A path with a slash at both ends."""
_ADDRESS: Final = r"[0-9a-fA-F:.]+(/[0-9]{1,3})?"
Addresses = Annotated[str, Meta(pattern=rf"^({_ADDRESS}(,{_ADDRESS})*)?$")]
"""IP addresses and CIDR blocks, separated by commas; "" = none."""
VolumeSize = Annotated[str, Meta(pattern=r"^([1-9][0-9]{0,5}(Mi|Gi|Ti))?$")]
"""A quantity of storage, or ""."""
ChartFolder = Annotated[
    str,
    Meta(
        max_length=300,
        pattern=r"^(oci://[A-Za-z0-9][-A-Za-z0-9.]*(:[0-9]{1,5})?(/[-a-z0-9._]+)*)?$",
    ),
]
"""A folder of charts in a registry, without a slash at its end, or ""."""
OptionalName = Annotated[str, Meta(pattern=r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$")]
"""The name of an object, or ""."""


def namespaces_known_by(
    name: str, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> frozenset[str]:
    """The namespaces of an installation that this namespace makes known; empty without the label.

    >>> by_helm = {HELM_NAMESPACE: "gpu-platform"}
    >>> sorted(namespaces_known_by("gpu-nodes", {INSTALLATION_LABEL: NODE_PART}, by_helm))
    ['gpu-nodes', 'gpu-platform']
    """
    if INSTALLATION_LABEL not in labels:
        return frozenset()
    release = annotations.get(HELM_NAMESPACE)
    return frozenset((name, release) if release else (name,))


class OwnAccounts(Struct, frozen=True):
    """ServiceAccounts of an installation as users of the API server, as admission rules name them.

    >>> OwnAccounts().node_agent
    'system:serviceaccount:fairlead-nodes:fairlead-node-agent'
    """

    namespace: str = SYSTEM_NAMESPACE
    node_namespace: str = NODE_NAMESPACE

    @property
    def namespaces(self) -> frozenset[str]:
        return frozenset((self.namespace, self.node_namespace))

    @property
    def scheduler(self) -> str:
        """Of the extender beside Fairlead's own kube-scheduler, and of that scheduler."""
        return f"system:serviceaccount:{self.namespace}:fairlead-scheduler"

    @property
    def extender(self) -> str:
        """Of the extender on machines of the control plane."""
        return f"system:serviceaccount:{self.node_namespace}:fairlead-gpushare-extender"

    @property
    def node_agent(self) -> str:
        return f"system:serviceaccount:{self.node_namespace}:fairlead-node-agent"

    @property
    def quota_controller(self) -> str:
        """The only account that may remove gates."""
        return f"system:serviceaccount:{self.namespace}:fairlead-quota-controller"

    @property
    def people_controller(self) -> str:
        """The only account that makes bindings for users."""
        return f"system:serviceaccount:{self.namespace}:fairlead-people-controller"

    @property
    def console(self) -> str:
        """With sign-in it writes users, credentials and the tree, and acts as users."""
        return f"system:serviceaccount:{self.namespace}:fairlead-reader"

    @property
    def grant_writers(self) -> tuple[str, ...]:
        """Accounts that may write grants."""
        return (self.scheduler, self.extender, self.node_agent)

    @property
    def quota_writers(self) -> tuple[str, ...]:
        """Accounts that may change marks of pods by which quota decides.

        Each is named: other accounts of these namespaces may belong to other programs.
        """
        return (self.quota_controller, self.scheduler, self.extender)


class Parts(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which parts of Fairlead an installation has."""

    console: bool = True
    cluster_exporter: bool = True
    gpu_exporter: bool = True
    gpu_exporter_rights: bool = False
    gpu_sharing: bool = True
    node_agent: bool = True
    quota: bool = True
    people: bool = True


class OidcValues(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An OpenID Connect provider. `issuer`: "" = none. `user_claim`: has a user's external uid."""

    issuer: str = ""
    client_id: str = ""
    scopes: str = "openid profile email"
    user_claim: Literal["sub", "email"] = "sub"


class SignInValues(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How users sign in at the console.

    `enabled`: False = every client is an administrator, and the console listens on its pod's
    loopback. `external_url`: where browsers find it, "" = by the host that they name; `base_path`:
    the path of it that a proxy keeps. `trusted_proxies`: whose X-Forwarded- headers count.
    `kubeconfig_server`: the API server as users reach it, "" = as the cluster publishes it.
    `secret`: a Secret of the operator's in `namespace`, with passwords and authorities, each of
    which may be absent.
    """

    enabled: bool = True
    external_url: str = ""
    base_path: PagePath = "/"
    trusted_proxies: Addresses = ""
    kubeconfig_server: str = ""
    secret: SecretName = "fairlead-console"
    oidc: OidcValues = OidcValues()


class StoreValues(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What the console keeps. `url`: of a database server; "" = a SQLite file in a volume.

    `size`: of a PersistentVolumeClaim for the file; "" = it ends with its pod. `storage_class`: of
    the claim, "" = the cluster's default.
    """

    url: str = ""
    size: VolumeSize = ""
    storage_class: OptionalName = ""


class IngressValues(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The Ingress of the console. `host`: "" = none. `tls_secret`: of its certificate, "" = the
    controller's default.
    """

    host: HostName = ""
    class_name: OptionalName = ""
    tls_secret: OptionalName = ""


class Installation(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One installation. In files the names are in camel case (`kubeSchedulerImage`).

    `namespace`: of all pods that need nothing of their node. `node_namespace`: of pods that use
    paths, processes or the network of their node; another one. `replicas`: of each part of which
    one replica works and others stand by. `admission`: the API server's policies (Kubernetes 1.36
    and later), or webhooks. `scheduler`: a kube-scheduler of its own, or the one on the machines of
    the control plane. `gpu_source`, `prometheus`: flags of console and cluster exporter; "" = their
    defaults. `runtime_class`: of pods that load the GPU driver; "" = the node's default.
    `kernel_log`: the GPU exporter reads the node's kernel log, for which its container is
    privileged. `network_policies`: limit which clients reach the pods. `pull_secrets`: Secrets of
    both namespaces by which nodes pull the images, each once. `first_administrator`: the user
    `admin` is made where no user is an administrator. `billing_time_zone`: in which a billing day
    of the usage ledger begins at midnight. `charts`: where the console expects charts of
    components.
    """

    parts: Parts = Parts()
    namespace: Namespace = SYSTEM_NAMESPACE
    node_namespace: Namespace = NODE_NAMESPACE
    image: Image = DEFAULT_IMAGE
    kube_scheduler_image: Image = DEFAULT_KUBE_SCHEDULER_IMAGE
    replicas: Replicas = 2
    admission: Literal["policies", "webhooks"] = "policies"
    scheduler: Literal["own", "control-plane"] = "own"
    gpu_source: Literal["", "exporters", "prometheus", "none"] = ""
    prometheus: str = ""
    runtime_class: str = ""
    kernel_log: bool = False
    network_policies: bool = True
    pull_secrets: SecretNames = ()
    first_administrator: bool = True
    billing_time_zone: TimeZone = "UTC"
    charts: ChartFolder = ""
    sign_in: SignInValues = SignInValues()
    store: StoreValues = StoreValues()
    ingress: IngressValues = IngressValues()

    @property
    def accounts(self) -> OwnAccounts:
        """The ServiceAccounts that admission rules name."""
        return OwnAccounts(self.namespace, self.node_namespace)
