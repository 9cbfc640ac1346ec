"""What a job's page shows of logs and of the object: which container is meant, a manifest without secrets.

What is taken out of a manifest is judged by names: an environment variable `API_TOKEN` is one, a value that
only looks like a token is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fairlead.console.boards.jobs_rows import wait_sentence
from fairlead.console.pages.envelope import Sentence
from fairlead.console.pages.jobs import InstanceLog
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.pod import ContainerState, ContainerStatus, Pod
from fairlead.model.refusal import Refusal
from fairlead.rules.jobs.waiting import why_no_pod, why_pod_waits

REDACTED: Final = "<redacted>"
_DROPPED: Final = frozenset(("managedFields", "kubectl.kubernetes.io/last-applied-configuration"))
"""What was sent once, whole: a secret of it would stand there a second time."""
_SECRET_NAME: Final = re.compile(r"token|secret|passw|password|key|credential", re.IGNORECASE)
_SECRET_FLAG: Final = re.compile(r"(-{1,2}[\w.-]*(?:token|secret|passw|api[-_]?key|credential)[\w.-]*)(=|\s+)(\S+)", re.IGNORECASE)
_WORDS: Final = ("command", "args")


def instance_logs(each: JobInstances) -> list[InstanceLog]:
    """Every container of the job's pods, the chief's first; in a pod its containers before its init steps."""
    pods = sorted(each.pods, key=lambda pod: pod is not each.chief)
    return [instance_log(pod, name) for pod in pods for name in _containers(pod)]


def instance_log(pod: Pod, container: str) -> InstanceLog:
    """Whether this container has a log, and why it has not."""
    status = _status(pod, container)
    begun = (status is not None and (status.has_begun or status.restarts > 0)) or (status is None and pod.is_finished)
    is_running = status is not None and status.state == ContainerState.RUNNING
    why, sentence = ("", None) if begun else _why_not(pod, status)
    return InstanceLog(pod.name, container, begun, is_running, status.restarts if status else 0, why, sentence)


def chosen_container(each: JobInstances, pod: str, container: str) -> tuple[Pod, str] | Refusal:
    """The pod that is named, or the chief, or the first; its container that is named, or its first.

    Refused: a pod that is not the job's, a container that the pod has not.
    """
    if not each.pods:
        return Refusal(f"{each.job.type} `{each.job.name}` has no instance, and so no log: {why_no_pod(each.job)}")
    chief = each.chief or each.pods[0]
    found = next((one for one in each.pods if one.name == pod), None) if pod else chief
    if found is None:
        return Refusal(f"`{pod[:253]}` is no instance of {each.job.type} `{each.job.name}`")
    known = _containers(found)
    if container and container not in known:
        return Refusal(f"pod `{found.name}` has no container `{container[:63]}`; it has {', '.join(known)}")
    return found, container or known[0]


def redacted_manifest(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The object without secret values and what only controllers read; and where a value was taken out.

    >>> redacted_manifest({"env": [{"name": "HF_TOKEN", "value": "x"}]})
    ({'env': [{'name': 'HF_TOKEN', 'value': '<redacted>'}]}, ['env[0].value'])
    """
    gone: list[str] = []
    shown = _shown(manifest, "", gone)
    return shown, gone


def _shown(value: Any, path: str, gone: list[str]) -> Any:
    if isinstance(value, Mapping):
        return {name: _field(value, name, f"{path}.{name}".lstrip("."), gone) for name in value if name not in _DROPPED}
    if isinstance(value, list):
        return [_shown(each, f"{path}[{index}]", gone) for index, each in enumerate(value)]
    return value


def _field(of: Mapping[str, Any], name: str, path: str, gone: list[str]) -> Any:
    value = of[name]
    if name == "value" and isinstance(of.get("name"), str) and value and _SECRET_NAME.search(of["name"]):
        gone.append(path)
        return REDACTED
    if name in ("data", "stringData") and of.get("kind") == "Secret" and isinstance(value, Mapping):
        gone.extend(f"{path}.{each}" for each in value)
        return dict.fromkeys(value, REDACTED)
    if name in _WORDS and isinstance(value, list):
        return list(_without_flags(value, path, gone))
    return _shown(value, path, gone)


def _without_flags(words: list[Any], path: str, gone: list[str]) -> Iterator[Any]:
    """A command without the values of flags such as `--api-key=…` and `--api-key …`."""
    is_value = False
    for index, word in enumerate(words):
        if not isinstance(word, str):
            yield word
            continue
        shown = REDACTED if is_value else _SECRET_FLAG.sub(rf"\1\2{REDACTED}", word)
        if shown != word:
            gone.append(f"{path}[{index}]")
        yield shown
        is_value = bool(_SECRET_FLAG.fullmatch(f"{word}=x")) and "=" not in word


def _containers(pod: Pod) -> list[str]:
    return [container.name for container in (*pod.containers, *pod.init_containers)]


def _status(pod: Pod, container: str) -> ContainerStatus | None:
    return next((status for status in (*pod.statuses, *pod.init_statuses) if status.name == container), None)


def _why_not(pod: Pod, status: ContainerStatus | None) -> tuple[str, Sentence | None]:
    """In words, and where they are ours as a sentence for any language."""
    wait = why_pod_waits(pod)
    if wait is None:
        return (status.reason if status is not None else "") or pod.phase, None
    return wait.message, wait_sentence(wait)
