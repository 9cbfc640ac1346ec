"""Metadata, containers and volumes of a serving spec, for Deployments and InferenceServices.

Every object and pod has arena's three labels, because only these connect the objects of one serving
job.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import to_builtins

from fairlead.kinds.parts.job_parts import VOID
from fairlead.kinds.parts.job_volumes import config_map_data, files_of, md5
from fairlead.kinds.serving.spec import Mount, ServingSpec
from fairlead.model.actions import Manifest
from fairlead.wire import names

_FIELDS: Final = {
    "ARENA_NODE_NAME": "spec.nodeName",
    "ARENA_POD_NAMESPACE": "metadata.namespace",
    "ARENA_POD_NAME": "metadata.name",
    "ARENA_POD_IP": "status.podIP",
}
"""Environment variables of every container of a serving job, from fields of its own pod."""


def release(spec: ServingSpec) -> str:
    """The common name of all objects of one version of a serving job."""
    return f"{spec.name}-{spec.version}"


def labels_of(spec: ServingSpec, app: str) -> dict[str, str]:
    """The user's labels, which cannot replace Fairlead's."""
    own = {
        "app": app,
        "release": release(spec),
        "heritage": "fairlead",
        names.LABEL_SERVING_NAME: spec.name,
        names.LABEL_SERVING_VERSION: spec.version,
        names.LABEL_SERVING_TYPE: spec.type,
    }
    if spec.user:
        own[names.LABEL_SUBMITTER] = md5(spec.user)
    model = {"modelName": spec.model_name, "modelVersion": spec.model_version}
    return {**spec.labels, **{label: value for label, value in model.items() if value}, **own}


def annotations_of(spec: ServingSpec) -> dict[str, str]:
    own = {names.ANNOTATION_USERNAME: spec.user} if spec.user else {}
    return {**spec.annotations, **own}


def metadata(spec: ServingSpec, app: str, name: str) -> Manifest:
    meta: Manifest = {"name": name, "namespace": spec.namespace, "labels": labels_of(spec, app)}
    add(meta, "annotations", annotations_of(spec))
    return meta


def container(spec: ServingSpec, name: str, ports: list[Manifest]) -> Manifest:
    found: Manifest = {"name": name}
    add(found, "image", spec.image)
    add(found, "imagePullPolicy", spec.pull_policy if spec.image else "")
    add(found, "command", [spec.shell, "-c", spec.command] if spec.command else [])
    found["env"] = _env(spec)
    add(found, "ports", ports)
    for probe, fields in spec.probes.items():
        found[f"{probe}Probe"] = dict(fields)
    add(found, "resources", _resources(spec))
    add(found, "volumeMounts", _mounts(spec))
    return found


def pod_fields(spec: ServingSpec) -> Manifest:
    """Fields of the pod besides its containers; empty values are left out."""
    pod: Manifest = {}
    add(pod, "volumes", _volumes(spec))
    add(pod, "nodeSelector", dict(spec.selector))
    add(pod, "tolerations", [to_builtins(each) for each in spec.tolerations])
    add(pod, "imagePullSecrets", [{"name": name} for name in spec.pull_secrets])
    return pod


def config_maps(spec: ServingSpec, app: str) -> list[Manifest]:
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata(spec, app, name),
            **config_map_data(files),
        }
        for name, files in files_of(release(spec), spec.config_files).items()
    ]


def add(target: Manifest, key: str, value: Any) -> None:
    if value:
        target[key] = value


def _env(spec: ServingSpec) -> list[Manifest]:
    """Fairlead's variables, then the user's, which can refer to them.

    A user's variable with the same name replaces Fairlead's.
    """
    plain = (
        {}
        if spec.gpus or spec.gpu_memory or names.GPU_MEMORY in spec.devices
        else {VOID[0]: VOID[1]}
    )
    plain |= spec.env
    secret = {each.name: each for each in spec.secret_env}
    fields = {
        name: path for name, path in _FIELDS.items() if name not in plain and name not in secret
    }
    variables: list[Manifest] = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in fields.items()
    ]
    variables += [
        {"name": name, "value": value} for name, value in plain.items() if name not in secret
    ]
    return variables + [
        {"name": each.name, "valueFrom": {"secretKeyRef": {"name": each.secret, "key": each.key}}}
        for each in secret.values()
    ]


def _resources(spec: ServingSpec) -> Manifest:
    """Limits equal to the requests."""
    counts = {
        names.NVIDIA_GPU: spec.gpus,
        **spec.devices,
        names.GPU_MEMORY: spec.gpu_memory,
        names.GPU_CORE: spec.gpu_core,
    }
    counts = {name: count or spec.devices.get(name, 0) for name, count in counts.items()}
    own = {**spec.limits, **{name: str(count) for name, count in counts.items() if count}}
    return {"requests": own, "limits": dict(own)} if own else {}


def _volumes(spec: ServingSpec) -> list[Manifest]:
    found: list[Manifest] = []
    if spec.shared_memory:
        found.append(
            {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": spec.shared_memory}}
        )
    found += [
        {"name": claim, "persistentVolumeClaim": {"claimName": claim}}
        for claim in dict.fromkeys(each.name for each in spec.claims)
    ]
    found += [{"name": empty.name, "emptyDir": {}} for empty in spec.empty_dirs]
    found += [
        {"name": f"serving-data-{i}", "hostPath": {"path": host}}
        for i, (host, _) in enumerate(spec.host_dirs)
    ]
    return found + [
        {"name": name, "configMap": {"name": name}}
        for name in files_of(release(spec), spec.config_files)
    ]


def _mounts(spec: ServingSpec) -> list[Manifest]:
    found: list[Manifest] = (
        [{"name": "dshm", "mountPath": "/dev/shm"}] if spec.shared_memory else []
    )
    found += [_mount(each) for each in (*spec.claims, *spec.empty_dirs)]
    found += [
        {"name": f"serving-data-{i}", "mountPath": path}
        for i, (_, path) in enumerate(spec.host_dirs)
    ]
    for name, files in files_of(release(spec), spec.config_files).items():
        found += [
            {"name": name, "mountPath": file.path, "subPath": file.path.rpartition("/")[2]}
            for file in files
        ]
    return found


def _mount(mount: Mount) -> Manifest:
    found: Manifest = {"name": mount.name, "mountPath": mount.path}
    add(found, "subPathExpr", mount.subpath)
    return found
