"""How do the job kinds come into the test cluster? Their CRDs, read from the operators' pinned modules.

The operators themselves do not run: a test writes the status that they would write.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from tests.kube.kubectl import Kubectl, wait_until
from tests.kube.programs import module_folder

_FILES = (
    ("MPI_OPERATOR", "manifests/base/kubeflow.org_mpijobs.yaml"),
    # Not training-operator's own mpijobs: it is v1 and refused over v2beta1.
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
    """RayJob, Volcano's Job, SparkApplication and KubeDL's Cron; returns when the API server serves them."""
    _install(admin, [_read(module_folder(family) / path) for family, path in _MORE_FILES])


def _install(admin: Kubectl, definitions: list[dict[str, Any]]) -> None:
    admin.apply(definitions)
    wait_until("the job kinds are served", lambda: all(_is_served(admin, definition["metadata"]["name"]) for definition in definitions))


def _read(path: Path) -> dict[str, Any]:
    documents = [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]
    (definition,) = documents
    definition.pop("status", None)
    return dict(definition)


def _is_served(admin: Kubectl, name: str) -> bool:
    (definition,) = (d for d in admin.get("customresourcedefinitions") if d["metadata"]["name"] == name)
    conditions = definition.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)
