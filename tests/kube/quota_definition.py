"""The CRD of the quota tree, as it is deployed."""

from __future__ import annotations

from tests.kube.quota_admission_cases import (
    Object,
)


def definition() -> Object:
    names = {
        "kind": "ElasticQuotaTree",
        "listKind": "ElasticQuotaTreeList",
        "plural": "elasticquotatrees",
        "singular": "elasticquotatree",
    }
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    approved = {
        "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "elasticquotatrees.scheduling.sigs.k8s.io", "annotations": approved},
        "spec": {
            "group": "scheduling.sigs.k8s.io",
            "names": names,
            "scope": "Namespaced",
            "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": schema}],
        },
    }
