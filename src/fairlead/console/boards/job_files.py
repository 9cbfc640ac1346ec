"""What a job's page shows of logs: which containers have one, and which is meant."""

from __future__ import annotations

from fairlead.console.boards.jobs_rows import wait_sentence
from fairlead.console.pages.envelope import Sentence
from fairlead.console.pages.jobs import InstanceLog
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.pod import ContainerState, ContainerStatus, Pod
from fairlead.model.refusal import Refusal
from fairlead.rules.jobs.waiting import why_no_pod, why_pod_waits


def instance_logs(each: JobInstances) -> list[InstanceLog]:
    """Every container of the job's pods, the chief's first;
    in a pod its containers before its init steps.
    """
    pods = sorted(each.pods, key=lambda pod: pod is not each.chief)
    return [instance_log(pod, name) for pod in pods for name in _containers(pod)]


def instance_log(pod: Pod, container: str) -> InstanceLog:
    """Whether this container has a log, and why it has not."""
    status = _status(pod, container)
    begun = (status is not None and (status.has_begun or status.restarts > 0)) or (
        status is None and pod.is_finished
    )
    is_running = status is not None and status.state == ContainerState.RUNNING
    why, sentence = ("", None) if begun else _why_not(pod, status)
    return InstanceLog(
        pod.name, container, begun, is_running, status.restarts if status else 0, why, sentence
    )


def chosen_container(each: JobInstances, pod: str, container: str) -> tuple[Pod, str] | Refusal:
    """The pod that is named, or the chief, or the first; its container that is named, or its first.

    Refused: a pod that is not the job's, a container that the pod has not.
    """
    if not each.pods:
        return Refusal(
            f"{each.job.type} `{each.job.name}` has no instance, and so no log: "
            f"{why_no_pod(each.job)}"
        )
    chief = each.chief or each.pods[0]
    found = next((one for one in each.pods if one.name == pod), None) if pod else chief
    if found is None:
        return Refusal(f"`{pod[:253]}` is no instance of {each.job.type} `{each.job.name}`")
    known = _containers(found)
    if container and container not in known:
        return Refusal(
            f"pod `{found.name}` has no container `{container[:63]}`; it has {', '.join(known)}"
        )
    return found, container or known[0]


def _containers(pod: Pod) -> list[str]:
    return [container.name for container in (*pod.containers, *pod.init_containers)]


def _status(pod: Pod, container: str) -> ContainerStatus | None:
    return next(
        (status for status in (*pod.statuses, *pod.init_statuses) if status.name == container), None
    )


def _why_not(pod: Pod, status: ContainerStatus | None) -> tuple[str, Sentence | None]:
    """The reason as text, and as a translatable sentence if Fairlead has one for it."""
    wait = why_pod_waits(pod)
    if wait is None:
        return (status.reason if status is not None else "") or pod.phase, None
    return wait.message, wait_sentence(wait)
