"""Metadata and pod templates of a job spec, which the manifests of all kinds share.

A container without a GPU gets `NVIDIA_VISIBLE_DEVICES=void`, because the NVIDIA runtime would
otherwise show it every GPU of the node; except where another device plugin sets the variable (GPU
memory, `aliyun.com/gpu-count`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, to_builtins

from fairlead.kinds.parts.job_volumes import md5, mounts, volumes
from fairlead.model.actions import Manifest
from fairlead.wire import names

if TYPE_CHECKING:
    from fairlead.kinds.parts.job_spec import JobSpec, RoleSpec


VOID: Final = ("NVIDIA_VISIBLE_DEVICES", "void")
_RDMA: Final = "rdma/hca"


class Part(Struct, frozen=True, kw_only=True):
    """What one role adds to the common template.

    `has_gpus`: whether this role gets the job's devices in addition to its own `gpus`.
    `has_counts`: whether its containers get the environment variables `workers` and `gpus`.
    """

    type: str
    container: str
    role: RoleSpec
    title: str = ""
    has_command: bool = True
    has_gpus: bool = True
    has_data: bool = True
    has_counts: bool = True
    is_in_gang: bool = True
    gang_size: int = 0
    port: int = 0
    env: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}


def labels_of(spec: JobSpec, type_: str, kind: str) -> dict[str, str]:
    """Labels of the job, its pods and companions.

    The user's labels come last, and cannot replace Fairlead's.
    """
    own = {"app": type_, "release": spec.name, "createdBy": kind, "heritage": "fairlead"}
    if spec.user:
        own[names.LABEL_SUBMITTER] = md5(spec.user)
    if spec.model_name:
        own["modelName"] = spec.model_name
    return {**spec.labels, **own}


def annotations_of(spec: JobSpec, gpus: int) -> dict[str, str]:
    own = {names.ANNOTATION_REQUESTED_GPUS: str(gpus)}
    if spec.user:
        own[names.ANNOTATION_USERNAME] = spec.user
    if spec.is_queued:
        own[names.ANNOTATION_SUSPEND] = "true"
    if spec.tensorboard is not None:
        own[names.ANNOTATION_TENSORBOARD] = f"{spec.name}-tensorboard"
    if spec.model_source:
        own["modelSource"] = spec.model_source
    return {**spec.annotations, **own}


def job_manifest(
    spec: JobSpec, type_: str, kind: str, api_version: str, gpus: int, body: Mapping[str, Any]
) -> Manifest:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": spec.name,
            "namespace": spec.namespace,
            "labels": labels_of(spec, type_, kind),
            "annotations": annotations_of(spec, gpus),
        },
        "spec": dict(body),
    }


def has_field(spec_fields: Collection[str] | None, name: str) -> bool:
    """Whether the served schema has the field.

    For an unknown schema the operator's newest is assumed.
    """
    return spec_fields is None or name in spec_fields


def run_policy(spec: JobSpec, clean_policy: str, *, has_retry: bool) -> Manifest:
    policy: Manifest = {"cleanPodPolicy": spec.clean_policy or clean_policy}
    if has_retry:
        policy["backoffLimit"] = spec.retry
    if spec.running_seconds is not None:
        policy["activeDeadlineSeconds"] = spec.running_seconds
    if spec.ttl_seconds is not None:
        policy["ttlSecondsAfterFinished"] = spec.ttl_seconds
    return policy


def replica(spec: JobSpec, kind: str, gpus: int, count: int, restart: str, part: Part) -> Manifest:
    """One role in the operators' form. `restart`: the kind's default restart policy."""
    return {
        "replicas": count,
        "restartPolicy": spec.restart or restart,
        "template": pod_template(spec, kind, gpus, part),
    }


def pod_template(spec: JobSpec, kind: str, gpus: int, part: Part) -> Manifest:
    """`gpus`: of the whole job, for an annotation."""
    annotations = {
        **spec.annotations,
        **part.role.annotations,
        names.ANNOTATION_REQUESTED_GPUS: str(gpus),
    }
    labels = {**labels_of(spec, part.type, kind), **_gang_labels(spec, part), **part.labels}
    return {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": _pod_spec(spec, part),
    }


def _gang_labels(spec: JobSpec, part: Part) -> dict[str, str]:
    if not (spec.is_gang and part.is_in_gang):
        return {}
    group = "pod-group.scheduling.sigs.k8s.io/"
    return {
        f"{group}name": f"{part.type}-{spec.name}",
        f"{group}min-available": str(part.gang_size),
    }


def _pod_spec(spec: JobSpec, part: Part) -> Manifest:
    pod: Manifest = {"containers": [_container(spec, part)]}
    if spec.sync is not None:
        pod["initContainers"] = [_init_container(spec)]
    _add(pod, "volumes", volumes(spec, has_data=part.has_data))
    _add(pod, "nodeSelector", dict(part.role.selector or spec.selector))
    _add(pod, "tolerations", [to_builtins(each) for each in spec.tolerations])
    _add(pod, "affinity", _affinity(spec, part))
    _add(pod, "priorityClassName", spec.priority)
    _add(pod, "schedulerName", spec.scheduler)
    _add(pod, "serviceAccountName", spec.service_account)
    _add(pod, "imagePullSecrets", [{"name": name} for name in spec.pull_secrets])
    if uses_host_network(spec):
        pod |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    _add(pod, "hostIPC", spec.host_ipc)
    _add(pod, "hostPID", spec.host_pid)
    return pod


def uses_host_network(spec: JobSpec) -> bool:
    """Whether the pod uses the node's network.

    It does not if it has its own interface (`k8s.aliyun.com/eni`).
    """
    has_own = spec.annotations.get("k8s.aliyun.com/eni") == "true"
    return (spec.host_network or spec.has_gpu_topology) and not has_own


def _container(spec: JobSpec, part: Part) -> Manifest:
    container: Manifest = {
        "name": part.container,
        "image": part.role.image or spec.image,
        "imagePullPolicy": spec.pull_policy,
    }
    if part.has_command and spec.command:
        container["command"] = [spec.shell, "-c", spec.command]
    _add(container, "workingDir", spec.working_dir)
    _add(container, "env", _env(spec, part))
    _add(container, "resources", _resources(spec, part))
    if part.port:
        container["ports"] = [{"name": "tfjob-port", "containerPort": part.port}]
    _add(container, "volumeMounts", mounts(spec, has_data=part.has_data))
    if spec.has_rdma:
        container["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}
    return container


def _env(spec: JobSpec, part: Part) -> list[Manifest]:
    """Fairlead's variables, then the user's.

    A variable of the user with the same name replaces Fairlead's in its place.
    """
    counts = (
        {"workers": str(spec.worker.replicas), "gpus": str(spec.worker.gpus)}
        if part.has_counts
        else {}
    )
    plain = {**counts, **part.env}
    if _sees_no_gpu(spec, part):
        plain[VOID[0]] = VOID[1]
    plain |= spec.env
    secret = {each.name: each for each in spec.secret_env}
    variables: list[Manifest] = [
        {"name": name, "value": value} for name, value in plain.items() if name not in secret
    ]
    return variables + [
        {"name": each.name, "valueFrom": {"secretKeyRef": {"name": each.secret, "key": each.key}}}
        for each in secret.values()
    ]


def _sees_no_gpu(spec: JobSpec, part: Part) -> bool:
    if part.has_gpus and (part.role.gpus or spec.gpu_memory or names.GPU_MEMORY in spec.devices):
        return False
    return names.GPU_COUNT not in spec.labels


def _resources(spec: JobSpec, part: Part) -> Manifest:
    """Requests and limits.

    Extended resources cannot be overcommitted, so their request is their limit.

    The same applies to cpu and memory, unless the role has limits of its own.
    """
    own: dict[str, str] = dict(part.role.resources)
    if part.has_gpus:
        if part.role.gpus:
            own[names.ALIYUN_GPU if spec.has_gpu_topology else names.NVIDIA_GPU] = str(
                part.role.gpus
            )
        own |= {resource: str(count) for resource, count in spec.devices.items()}
        own |= {
            resource: str(n)
            for resource, n in (
                (names.GPU_MEMORY, spec.gpu_memory),
                (names.GPU_CORE, spec.gpu_core),
            )
            if n
        }
    if spec.has_rdma:
        own[_RDMA] = "1"
    limits = {**own, **part.role.limits}
    return {"requests": own, "limits": limits} if own else {"limits": limits} if limits else {}


def _affinity(spec: JobSpec, part: Part) -> Manifest:
    wanted = {
        "app": part.type,
        "release": spec.name,
        **({names.LABEL_REPLICA_TYPE: part.title} if part.title else {}),
    }
    return affinity(part.role.affinity_policy, part.role.affinity_constraint, wanted)


def affinity(policy: str, constraint: str, wanted: Mapping[str, str]) -> Manifest:
    """`spread` places pods with these labels on different nodes, `binpack` on the same.

    `none`: no rule.
    """
    if policy == "none":
        return {}
    term = {"labelSelector": {"matchLabels": dict(wanted)}, "topologyKey": names.LABEL_HOSTNAME}
    key = "podAntiAffinity" if policy == "spread" else "podAffinity"
    if constraint == "required":
        return {key: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {
        key: {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": term}
            ]
        }
    }


def _init_container(spec: JobSpec) -> Manifest:
    """Copies the code before the training, into the volume mounted at `<working dir>/code`."""
    assert spec.sync is not None
    container: Manifest = {
        "name": "init-code",
        "image": spec.sync.image,
        "imagePullPolicy": spec.pull_policy,
    }
    if spec.sync.mode == "git":
        repository = spec.sync.source.rstrip("/").rpartition("/")[2].removesuffix(".git")
        settings = {
            "GIT_SYNC_REPO": spec.sync.source,
            "GIT_SYNC_DEST": repository,
            "GIT_SYNC_ROOT": "/code",
            "GIT_SYNC_ONE_TIME": "true",
        }
        # The user's `-e` variables reach git as well: a branch (GIT_SYNC_BRANCH), a user, a
        # password.
        container["env"] = [
            {"name": name, "value": value} for name, value in {**settings, **spec.env}.items()
        ]
    else:
        container["command"] = ["rsync", "-avP", spec.sync.source, "/code"]
    container["volumeMounts"] = [{"name": "code-sync", "mountPath": "/code"}]
    return container


def _add(target: Manifest, key: str, value: Any) -> None:
    """Adds the key unless the value is empty."""
    if value:
        target[key] = value
