"""Objects beside an installation."""

from __future__ import annotations

from tests.kube.control_plane import ControlPlane
from tests.kube.kubectl import KubectlError


def has_gated_pod(cluster: ControlPlane) -> bool:
    """Makes the pod `p` anew until the policy is in force."""
    container = {"name": "c", "image": "busybox"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "team"},
        "spec": {"containers": [container], "automountServiceAccountToken": False},
    }
    try:
        cluster.admin.create([pod])
    except KubectlError:
        return False
    if "schedulingGates" in cluster.admin.run("get", "pod", "p", "-n", "team", "-o", "yaml"):
        return True
    cluster.admin.run("delete", "pod", "p", "-n", "team", "--force")
    return False


def install_foreign_definition(cluster: ControlPlane, scope: str) -> None:
    """Another program's definition of the same name."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    cluster.admin.create(
        [
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {
                    "name": "elasticquotatrees.scheduling.sigs.k8s.io",
                    "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
                },
                "spec": {
                    "group": "scheduling.sigs.k8s.io",
                    "names": {"plural": "elasticquotatrees", "kind": "ElasticQuotaTree"},
                    "scope": scope,
                    "versions": [version],
                },
            }
        ]
    )
