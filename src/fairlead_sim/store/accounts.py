"""What each namespace has: ServiceAccount `default`, and a ConfigMap with the authority.

They are created in the same instant as the namespace (on a real cluster a few milliseconds later)
and come back when they are deleted. The authority is not part of the history: it exists while a
server serves the world, and is a new one at every start.
"""

from __future__ import annotations

from fairlead_sim.objects.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS
from fairlead_sim.objects.watch_log import DELETED, LoggedChange, Object
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.store.cluster import StoredCluster

ACCOUNT = "default"
AUTHORITY = "kube-root-ca.crt"
_ABOUT = {
    "kubernetes.io/description": "Contains a CA bundle that can be used to verify the "
    "kube-apiserver when using internal endpoints such as "
    "the internal service IP or kubernetes.default.svc. No other usage is guaranteed across "
    "distributions of Kubernetes clusters."
}


class Accounts:
    """Keeps them there, in all namespaces that are and will be."""

    def __init__(self, cluster: StoredCluster) -> None:
        self._cluster = cluster
        self._authority = ""
        for ref in (NAMESPACES, SERVICE_ACCOUNTS, CONFIG_MAPS):
            cluster.subscribe(ref, self._on_change)
        self._provide_all()

    def publish(self, authority: str) -> None:
        """Publish the authority (PEM) that has signed the server's certificate."""
        self._authority = authority
        self._provide_all()

    def _provide_all(self) -> None:
        for namespace in self._cluster.list(NAMESPACES):
            self._provide(namespace)

    def _on_change(self, event: LoggedChange) -> None:
        metadata = event.object["metadata"]
        if event.object["kind"] == "Namespace":
            if event.type != DELETED:
                self._provide(event.object)
        elif metadata["name"] in (ACCOUNT, AUTHORITY) and event.previous is not None:
            namespace = self._cluster.get(NAMESPACES, None, metadata["namespace"])
            if namespace is not None:
                self._provide(namespace)

    def _provide(self, namespace: Object) -> None:
        if "deletionTimestamp" in namespace["metadata"]:
            return
        name = namespace["metadata"]["name"]
        self._keep(SERVICE_ACCOUNTS, {"metadata": {"name": ACCOUNT, "namespace": name}})
        if self._authority:
            metadata = {"name": AUTHORITY, "namespace": name, "annotations": _ABOUT}
            self._keep(CONFIG_MAPS, {"metadata": metadata, "data": {"ca.crt": self._authority}})

    def _keep(self, ref: ResourceKind, wanted: Object) -> None:
        """Create the object if it is missing, and restore its data if they were changed."""
        metadata = wanted["metadata"]
        found = self._cluster.get(ref, metadata["namespace"], metadata["name"])
        if found is None:
            self._cluster.create({"apiVersion": ref.api_version, "kind": ref.kind, **wanted})
        elif "data" in wanted and found.get("data") != wanted["data"]:
            self._cluster.update({**found, "data": wanted["data"]})
