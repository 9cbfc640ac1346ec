"""Resources of an API server: group, version, plural, scope, and paths of one object or of all."""

from __future__ import annotations

from urllib.parse import quote

from msgspec import Struct

from fairlead.model.actions import ObjectRef
from fairlead.wire.names import QUOTA_GROUP, QUOTA_PLURAL, QUOTA_VERSION


class Resource(Struct, frozen=True, gc=False):
    """`group` is "" for the core API. `kind` is for messages and may be empty."""

    group: str
    version: str
    plural: str
    is_namespaced: bool = True
    kind: str = ""

    @property
    def label(self) -> str:
        """`pods` or `mpijobs.kubeflow.org`, the name in the API server's messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def ref(self, name: str, namespace: str = "") -> ObjectRef:
        """The reference of one object of this resource."""
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        return ObjectRef(api_version, self.kind, name, namespace, plural=self.plural)

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """The URL path; for a namespaced resource without `namespace`, that of all namespaces.

        >>> PODS.path("team a", "p"), NODES.path()
        ('/api/v1/namespaces/team%20a/pods/p', '/api/v1/nodes')
        >>> Resource("kubeflow.org", "v2beta1", "mpijobs").path("x")
        '/apis/kubeflow.org/v2beta1/namespaces/x/mpijobs'
        """
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace and self.is_namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part]
        return "/".join(parts)


NODES = Resource("", "v1", "nodes", is_namespaced=False, kind="Node")
PODS = Resource("", "v1", "pods", kind="Pod")
JOBS = Resource("batch", "v1", "jobs", kind="Job")
EVENTS = Resource("", "v1", "events", kind="Event")
CONFIG_MAPS = Resource("", "v1", "configmaps", kind="ConfigMap")
SECRETS = Resource("", "v1", "secrets", kind="Secret")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", kind="ServiceAccount")
SERVICES = Resource("", "v1", "services", kind="Service")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", kind="PersistentVolumeClaim")
NAMESPACES = Resource("", "v1", "namespaces", is_namespaced=False, kind="Namespace")
DEPLOYMENTS = Resource("apps", "v1", "deployments", kind="Deployment")
LEASES = Resource("coordination.k8s.io", "v1", "leases", kind="Lease")
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", is_namespaced=False, kind="PriorityClass"
)
QUOTA_TREES = Resource(QUOTA_GROUP, QUOTA_VERSION, QUOTA_PLURAL, kind="ElasticQuotaTree")
WELL_KNOWN = (
    NODES,
    PODS,
    EVENTS,
    CONFIG_MAPS,
    SECRETS,
    SERVICES,
    NAMESPACES,
    DEPLOYMENTS,
    LEASES,
    PRIORITY_CLASSES,
)
"""Resources that every API server serves, so that no discovery is needed."""
