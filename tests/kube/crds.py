"""Installs the CRDs of the job kinds in the test cluster. They are read from the operators' pinned
modules.

The operators themselves do not run: a test writes the status that they would write.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from tests.kube.kubectl import Kubectl, KubectlError
from tests.kube.programs import module_folder
from tests.waiting import wait_until

_FILES = (
    ("MPI_OPERATOR", "manifests/base/kubeflow.org_mpijobs.yaml"),
    # Not training-operator's own MPIJob definition: it is v1, and the API server refuses it over
    # v2beta1.
    ("TRAINING_OPERATOR", "manifests/base/crds/kubeflow.org_tfjobs.yaml"),
    ("TRAINING_OPERATOR", "manifests/base/crds/kubeflow.org_pytorchjobs.yaml"),
)


_MORE_FILES = (
    ("RAY_OPERATOR", "config/crd/bases/ray.io_rayjobs.yaml"),
    ("VOLCANO", "config/crd/volcano/bases/batch.volcano.sh_jobs.yaml"),
    ("SPARK_OPERATOR", "config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml"),
    ("KUBEDL", "config/crd/bases/apps.kubedl.io_crons.yaml"),
)


def install_job_kinds(admin: Kubectl) -> None:
    """MPIJob v2beta1, TFJob v1 and PyTorchJob v1; returns when the API server serves them."""
    _install(admin, [_read(module_folder(family) / path) for family, path in _FILES])


def install_more_job_kinds(admin: Kubectl) -> None:
    """RayJob, Volcano's Job, SparkApplication, KubeDL's Cron and TrainingJob; returns when the API
    server serves them.
    """
    _install(
        admin,
        [*(_read(module_folder(family) / path) for family, path in _MORE_FILES), _training_jobs()],
    )


def install_kserve(admin: Kubectl) -> None:
    """InferenceService v1beta1; returns when the API server serves it."""
    _install(
        admin,
        [
            _read(
                module_folder("KSERVE") / "config/crd/full/serving.kserve.io_inferenceservices.yaml"
            )
        ],
    )


def fluid_definitions() -> list[dict[str, Any]]:
    """Of all kinds of Fluid."""
    folder = module_folder("FLUID") / "config" / "crd" / "bases"
    return [_read(path) for path in sorted(folder.glob("data.fluid.io_*.yaml"))]


def install_fluid(admin: Kubectl) -> None:
    """All kinds of Fluid; returns when the API server serves them."""
    _install(admin, fluid_definitions())


def install_monitors(admin: Kubectl) -> None:
    """PodMonitor, ServiceMonitor and PrometheusRule of the Prometheus operator; returns when the
    API server serves them.
    """
    folder = module_folder("PROMETHEUS_OPERATOR") / "example" / "prometheus-operator-crd"
    kinds = ("podmonitors", "servicemonitors", "prometheusrules")
    _install(admin, [_read(folder / f"monitoring.coreos.com_{kind}.yaml") for kind in kinds])


def install_operator_of_prometheus(admin: Kubectl) -> None:
    """Install all kinds of the Prometheus operator, which does less without them. Returns when the
    API server serves them.
    """
    folder = str(module_folder("PROMETHEUS_OPERATOR") / "example" / "prometheus-operator-crd")
    # kubectl reads what PyYAML cannot: a plain `=`
    admin.run("apply", "--server-side", "-f", folder)
    wait_until("the kinds are served", lambda: _are_served(admin, ["-f", folder]), 150)


def _training_jobs() -> dict[str, Any]:
    """TrainingJob as et-operator's documents describe it. No available module contains the original
    definition, so this one is written here.
    """
    count = {"type": "integer", "minimum": 1}
    words = {"type": "string", "enum": ["Never", "OnFailure", "Always", "ExitCode"]}
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    launcher = {"replicas": {**count, "maximum": 1}, "restartPolicy": words, "template": anything}
    worker = {
        "replicas": count,
        "minReplicas": count,
        "maxReplicas": count,
        "restartPolicy": words,
        "template": anything,
    }
    roles = {
        role: {"type": "object", "properties": fields}
        for role, fields in (("launcher", launcher), ("worker", worker))
    }
    spec = {
        "backoffLimit": {"type": "integer", "minimum": 0},
        "restartPolicy": {"type": "string", "enum": ["Never", "OnFailure"]},
        "cleanPodPolicy": {"type": "string"},
        "etReplicaSpecs": {"type": "object", "properties": roles},
    }
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": spec}, "status": anything},
    }
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "trainingjobs.kai.alibabacloud.com"},
        "spec": {
            "group": "kai.alibabacloud.com",
            "names": {
                "plural": "trainingjobs",
                "singular": "trainingjob",
                "kind": "TrainingJob",
                "listKind": "TrainingJobList",
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _install(admin: Kubectl, definitions: list[dict[str, Any]]) -> None:
    admin.apply(definitions)
    named = [
        f"customresourcedefinition/{definition['metadata']['name']}" for definition in definitions
    ]
    wait_until("the kinds are served", lambda: _are_served(admin, named), 150)
    # An API server answers the first lists of a new kind with 429 while it fills its cache; kubectl
    # tries these again.
    kinds = ",".join(definition["metadata"]["name"] for definition in definitions)
    admin.run("get", kinds, "--all-namespaces", "-o", "name")


def _are_served(admin: Kubectl, named: list[str]) -> bool:
    """Whether the definitions are served, by `kubectl wait`: reading them would fetch megabytes.
    `wait` fails on a definition that has no status yet.
    """
    try:
        admin.run("wait", "--for=condition=Established", "--timeout=10s", *named)
    except KubectlError:
        return False
    return True


def _read(path: Path) -> dict[str, Any]:
    documents = [
        document
        for document in yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        if document
    ]
    (definition,) = documents
    definition.pop("status", None)
    return dict(definition)
