"""The objects that are created with a job.

ConfigMaps for files, TensorBoard's Deployment and Service, a Secret for ssh.

An ownerReference needs the job's uid, so the job is created first and `owned_by` makes the others
its children afterwards. One object comes before the job and is adopted by it: the Secret, which the
operator would otherwise create itself.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from fairlead.kinds.parts.elastic_training import ElasticOptions
from fairlead.kinds.parts.job_parts import labels_of
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.parts.job_volumes import config_map_data, files_by_map, log_claim, log_volume_of
from fairlead.model.actions import Manifest
from fairlead.wire import names

_PORT: Final = 6006
_SSH_CONFIG: Final = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
"""Workers are new hosts each time, and their names exist only inside the cluster."""


def prerequisites(spec: JobSpec, type_: str, kind: str) -> list[Manifest]:
    """The objects that must exist before the job."""
    keys = spec.options.keys if isinstance(spec.options, ElasticOptions) else None
    if keys is None:
        return []
    data = {"config": _SSH_CONFIG, "id_rsa": keys.private, "id_rsa.pub": keys.public}
    coded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    metadata = _metadata(spec, spec.name, labels_of(spec, type_, kind))
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": "Opaque",
            "data": coded,
        }
    ]


def companions(
    spec: JobSpec, type_: str, kind: str, chief_labels: Mapping[str, str]
) -> list[Manifest]:
    """The objects that are created after the job, in order.

    `chief_labels` select the chief's pod; TensorBoard must run on its node, where the logs are.
    """
    labels = labels_of(spec, type_, kind)
    found = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": _metadata(spec, name, labels),
            **config_map_data(files),
        }
        for name, files in files_by_map(spec).items()
    ]
    return found + (
        _tensorboard(spec, labels, chief_labels) if spec.tensorboard is not None else []
    )


def owned_by(manifest: Manifest, job: Mapping[str, Any]) -> Manifest:
    """The manifest as a child of the created job: deleting the job deletes it."""
    return {
        **manifest,
        "metadata": {**manifest["metadata"], "ownerReferences": [owner_reference(job)]},
    }


def owner_reference(job: Mapping[str, Any]) -> Manifest:
    meta = job["metadata"]
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": False,
    }


def _metadata(spec: JobSpec, name: str, labels: Mapping[str, str]) -> Manifest:
    return {"name": name, "namespace": spec.namespace, "labels": dict(labels)}


def _tensorboard(
    spec: JobSpec, labels: Mapping[str, str], chief_labels: Mapping[str, str]
) -> list[Manifest]:
    name = f"{spec.name}-tensorboard"
    chosen = {"app": labels["app"], "release": spec.name, "role": "tensorboard"}
    own = {**labels, "role": "tensorboard"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(spec, name, own),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": chosen},
            "template": {"metadata": {"labels": own}, "spec": _pod_spec(spec, chief_labels)},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(spec, name, own),
        "spec": {
            "type": "NodePort",
            "selector": chosen,
            "ports": [{"name": "tensorboard", "port": _PORT, "targetPort": _PORT}],
        },
    }
    return [deployment, service]


def _pod_spec(spec: JobSpec, chief_labels: Mapping[str, str]) -> Manifest:
    board = spec.tensorboard
    assert board is not None
    volume, mount = log_volume_of(spec)
    container = {
        "name": "tensorboard",
        "image": board.image,
        "imagePullPolicy": spec.pull_policy,
        "command": ["tensorboard", f"--logdir={board.logdir}", "--host=0.0.0.0", f"--port={_PORT}"],
        "ports": [{"containerPort": _PORT}],
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
        "volumeMounts": [mount],
    }
    pod: Manifest = {"containers": [container], "volumes": [volume]}
    if spec.pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in spec.pull_secrets]
    if log_claim(spec) is None:
        term = {
            "labelSelector": {"matchLabels": dict(chief_labels)},
            "topologyKey": names.LABEL_HOSTNAME,
        }
        pod["affinity"] = {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    return pod
