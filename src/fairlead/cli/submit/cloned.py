"""The flags of a job that exists: the way back from its object to a form.

No rule here knows how a flag is written. Values that stand in the object are tried in the flags
that could have written them, and a flag is kept if the objects of `submit` come nearer to the job
with it. What still differs at the end cannot be carried over, and is named.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from fairlead.console.pages.writing.jobs import JobFlag
from fairlead.model.actions import Manifest
from fairlead.wire.names import ANNOTATION_SSH_SECRET
from fairlead.wire.text.secret_words import HIDDEN

Flags = dict[str, bool | str | list[str]]
Build = Callable[[Flags, str], Manifest | None]
"""The job's object of these flags and this command; None = they make none."""
_IGNORED: Final = re.compile(
    r"^(metadata\.(?!labels|annotations)|status\b"
    r"|metadata\.\w+\.(fairlead\.io/(?!tensorboard)|kubectl\.kubernetes\.io/"
    r"|arena\.kubeflow\.org/(console-user|username|uid)))"
    r"|\.suspend$|\.creationTimestamp$"
)
"""What the API server, quota and admission write."""
_DEFAULTS: Final = frozenset(
    (
        ("spec.launcherCreationPolicy", "AtStartup"),
        ("spec.mpiImplementation", "OpenMPI"),
        ("spec.sshAuthMountPath", "/root/.ssh"),
    )
)
"""What the API server adds by the operators' definitions."""
_RESOURCES: Final = {
    "nvidia.com/gpu": r"gpus?$",
    "aliyun.com/gpu-mem": "gpumemory",
    "aliyun.com/gpu-core.percentage": "gpucore",
    "cpu": r"(^|-)cpu(-request|-limit)?$",
    "memory": r"(^|-)memory(-request|-limit)?$",
}
_KEYS: Final = {
    "image": r"image$",
    "imagePullPolicy": r"image-pull-policy$",
    "restartPolicy": r"restart-policy$",
    "cleanPodPolicy": "clean-task-policy",
    "backoffLimit": r"^(retry|job-backoff-limit)$",
    "activeDeadlineSeconds": r"^(running-timeout|active-deadline-seconds)$",
    "ttlSecondsAfterFinished": "ttl-after-finished",
    "startingDeadlineSeconds": "starting-timeout",
    "priorityClassName": "^priority$",
    "schedulerName": r"^scheduler(-name)?$",
    "serviceAccountName": r"service-account$",
    "serviceAccount": r"service-account$",
    "workingDir": "working-dir",
    "sizeLimit": "share-memory",
    "nprocPerNode": "nproc-per-node",
    "successPolicy": "success-policy",
    "rayVersion": "ray-version",
    "mainClass": "main-class",
    "mainApplicationFile": "jar",
    "sparkVersion": "spark-version",
    "queue": "^queue$",
    "minAvailable": "min-available",
    "cores": r"cpu-request$",
    "instances": "^replicas$",
    "slotsPerWorker": "^gpus$",
}
"""A key of an object -> the flags that write it."""
_COUNTS: Final = re.compile(
    r"^(workers|ps|(worker-|task-)?replicas|m(in|ax)-workers|worker-m(in|ax)-replicas)$"
)
_TIMES: Final = re.compile(r"(timeout|ttl-after-finished|deadline-seconds)$")
_START: Final = {"worker-replicas": "1"}
"""Flags without which nothing is made."""
_PART: Final = re.compile(r"\.(name|value|mountPath)$")
LOST_MAX: Final = 30


def cloned(
    forms: Mapping[str, JobFlag], job: Manifest, build: Build
) -> tuple[Flags, str, list[str]]:
    """Flags, the command, and the paths of what they do not carry over.

    `job`: without secret values, as a page shows it.
    """
    wanted = dict(leaves(job).items() - _DEFAULTS)
    images = _values(job, "image")
    flags: Flags = {name: value for name, value in _START.items() if name in forms}
    if images and "image" in forms:
        flags["image"] = images[0]
    if images and "task-images" in forms:
        flags["task-images"] = [",".join(images)]
    shell, command = _command(job)
    if shell and shell != "sh" and "shell" in forms:
        flags["shell"] = shell
    near = _distance(wanted, build(flags, command))
    for _ in range(2):  # some flags have an effect beside others only
        for candidate in _candidates(forms, job):
            tried = _with(flags, candidate)
            if tried == flags:
                continue
            distance = _distance(wanted, build(tried, command))
            if distance < near:
                flags, near = tried, distance
    made = build(flags, command)
    # Also what arena adds to every job and what is not in this job.
    rest = set(wanted.items()) ^ set(leaves(made).items()) if made is not None else wanted.items()
    lost = sorted({_PART.sub("", path) for path, _ in rest})
    return flags, command, lost[:LOST_MAX]


def leaves(value: Any, path: str = "") -> dict[str, str]:
    """Paths of an object with their values, without empty ones.

    Things in lists go by their names.
    """
    if isinstance(value, dict):
        found: dict[str, str] = {}
        for key, each in value.items():
            found |= leaves(each, f"{path}.{key}" if path else str(key))
        return found
    if isinstance(value, list):
        found = {}
        for number, each in enumerate(value):
            name = each.get("name") if isinstance(each, dict) else None
            mount = each.get("mountPath") if isinstance(each, dict) else None
            found |= leaves(each, f"{path}[{mount or name or number}]")
        return found
    if value in (None, "", False, 0) or _IGNORED.search(path):
        return {}
    return {path: str(value)}


def _distance(wanted: Mapping[str, str], made: Manifest | None) -> int:
    if made is None:
        return len(wanted) + 1_000_000
    return len(set(wanted.items()) ^ set(leaves(made).items()))


def _with(flags: Flags, more: Flags) -> Flags:
    """Values of flags that come several times are added."""
    found = dict(flags)
    for name, value in more.items():
        before = found.get(name)
        if isinstance(value, list) and isinstance(before, list):
            found[name] = [*before, *(each for each in value if each not in before)]
        else:
            found[name] = value
    return found


def _candidates(forms: Mapping[str, JobFlag], job: Manifest) -> Iterator[Flags]:
    """Values of the object in flags that could have written them, each once."""
    seen = set[str]()
    for candidate in _all_candidates(forms, job):
        key = str(candidate)
        if forms.keys() >= candidate.keys() and HIDDEN not in key and key not in seen:
            seen.add(key)
            yield candidate


def _all_candidates(forms: Mapping[str, JobFlag], job: Manifest) -> Iterator[Flags]:
    metadata = job.get("metadata") or {}
    for key, value in (metadata.get("labels") or {}).items():
        yield {"label": [f"{key}={value}"]}
    for key, value in (metadata.get("annotations") or {}).items():
        if key == "modelSource":
            yield {"model-source": str(value)}
        if key == ANNOTATION_SSH_SECRET:
            yield {"ssh-secret": str(value)}
        yield {"annotation": [f"{key}={value}"]}
    yield from _scalars(forms, job)
    for pod in _pods(job):
        yield from _of_pod(pod)
    for flag in forms.values():
        if flag.kind == "truth":
            yield {flag.name: flag.standard != "true"}


def _scalars(forms: Mapping[str, JobFlag], job: Manifest) -> Iterator[Flags]:
    texts = [flag.name for flag in forms.values() if flag.kind == "text"]
    patterns = [*_KEYS.items(), *_RESOURCES.items()]
    counts = sorted(
        {
            int(each)
            for key in ("replicas", "minReplicas", "maxReplicas")
            for each in _values(job, key)
            if each.isdigit()
        }
    )
    whole = sum(int(each) for each in _values(job, "replicas") if each.isdigit())
    for name in texts:
        if _COUNTS.search(name):
            for number in (*counts, whole):
                yield {name: str(number)}
        for key, pattern in patterns:
            if re.search(pattern, name):
                for value in dict.fromkeys(_values(job, key)):
                    is_time = _TIMES.search(name) and value.isdigit()
                    yield {name: f"{value}s" if is_time else value}


def _of_pod(pod: Mapping[str, Any]) -> Iterator[Flags]:
    for key, value in (pod.get("nodeSelector") or {}).items():
        for flag in ("selector", "worker-selector", "launcher-selector", "ps-selector"):
            yield {flag: [f"{key}={value}"]}
    for each in pod.get("tolerations") or ():
        yield {"toleration": [_toleration(each)]}
    for each in pod.get("imagePullSecrets") or ():
        yield {"image-pull-secret": [str(each.get("name", ""))]}
    claims, folders = _volumes(pod)
    for init in pod.get("initContainers") or ():
        yield from _sync(init)
    for container in pod.get("containers") or ():
        for each in container.get("env") or ():
            reference = (each.get("valueFrom") or {}).get("secretKeyRef") or {}
            if "value" in each:
                yield {"env": [f"{each['name']}={each['value']}"]}
            elif reference:
                secret = f"{reference.get('name')}:{reference.get('key')}"
                yield {"env-from-secret": [f"{each['name']}={secret}"]}
        for mount in container.get("volumeMounts") or ():
            if (name := str(mount.get("name"))) in claims:
                yield {"data": [f"{claims[name]}:{mount.get('mountPath')}"]}
            yield {"tensorboard": True, "logdir": str(mount.get("mountPath"))}
            if name in folders:
                yield {"data-dir": [f"{folders[name]}:{mount.get('mountPath')}"]}
        for name, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            if "/" in name and name not in _RESOURCES:
                yield {"device": [f"{name}={amount}"]}


def _volumes(pod: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    claims, folders = dict[str, str](), dict[str, str]()
    for each in pod.get("volumes") or ():
        if claim := (each.get("persistentVolumeClaim") or {}).get("claimName"):
            claims[str(each.get("name"))] = str(claim)
        if folder := (each.get("hostPath") or {}).get("path"):
            folders[str(each.get("name"))] = str(folder)
    return claims, folders


def _sync(init: Mapping[str, Any]) -> Iterator[Flags]:
    sources = {str(each.get("name")): str(each.get("value", "")) for each in init.get("env") or ()}
    if repository := sources.get("GIT_SYNC_REPO"):
        git: Flags = {"sync-mode": "git", "sync-source": repository}
        yield git
        yield {**git, "sync-image": str(init.get("image", ""))}


def _toleration(of: Mapping[str, Any]) -> str:
    key, value, effect = (str(of.get(name) or "") for name in ("key", "value", "effect"))
    operator = str(of.get("operator") or "")
    if not key:
        return "all"
    named = f"{key}={value}" if value else key
    text = f"{named}:{effect}" if effect else named
    return f"{text},{operator}" if operator and value else text


def _command(job: Manifest) -> tuple[str, str]:
    """The shell and the command of the first container that has one."""
    for pod in _pods(job):
        for container in pod.get("containers") or ():
            words = container.get("command")
            if isinstance(words, list) and len(words) == 3 and words[1] == "-c":
                return str(words[0]), str(words[2])
    arguments = (job.get("spec") or {}).get("arguments")
    if isinstance(arguments, list):
        return "", shlex.join(map(str, arguments))
    entry = _values(job, "entrypoint")
    return "", entry[0] if entry else ""


def _pods(value: Any) -> Iterator[Mapping[str, Any]]:
    """The specs of all pods in the object."""
    for each in _dicts(value):
        if isinstance(each.get("containers"), list):
            yield each


def _values(value: Any, key: str) -> list[str]:
    """All plain values with this key, in their order."""
    found = (each[key] for each in _dicts(value) if key in each)
    return [str(each) for each in found if isinstance(each, str | int) and each != ""]


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    parts: Sequence[Any] = ()
    if isinstance(value, dict):
        yield value
        parts = list(value.values())
    elif isinstance(value, list):
        parts = value
    for each in parts:
        yield from _dicts(each)
