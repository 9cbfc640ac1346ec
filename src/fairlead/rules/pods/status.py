"""The status word of a pod: the STATUS column of `kubectl get pods`.

It is more than the phase: a crashing pod has the phase Running, and a pod that is being deleted
keeps its phase, where people expect `CrashLoopBackOff` and `Terminating`. Of several containers the
first with a reason decides, as in kubectl.
"""

from __future__ import annotations

from typing import Final

from fairlead.model.pod import ContainerState, ContainerStatus, Pod

_RUNNING: Final = ContainerState.RUNNING
_TERMINATED: Final = ContainerState.TERMINATED
_WAITING: Final = ContainerState.WAITING


def pod_status(pod: Pod) -> str:
    """`Running`, `Pending`, `Completed`, `Init:0/1`, `CrashLoopBackOff`, `Terminating`, …"""
    if pod.deleted_at is not None and not pod.is_finished:
        return "Unknown" if pod.reason == "NodeLost" else "Terminating"
    word = _init_word(pod)
    if word is not None:
        return word
    word = pod.reason or ("SchedulingGated" if pod.gates else pod.phase)
    for status in reversed(pod.statuses):
        word = _container_word(status) or word
    if word == "Completed" and any(
        status.ready and status.state == _RUNNING for status in pod.statuses
    ):
        return "Running" if is_ready(pod) else "NotReady"
    return word


def _init_word(pod: Pod) -> str | None:
    """`Init:…` while an init container has not ended successfully; None otherwise."""
    restartable = {container.name for container in pod.init_containers if container.restartable}
    for place, status in enumerate(pod.init_statuses):
        if status.state == _TERMINATED and status.exit_code == 0:
            continue
        if status.name in restartable and status.started:
            continue
        if status.state == _TERMINATED or (
            status.state == _WAITING and status.reason not in ("", "PodInitializing")
        ):
            return f"Init:{_container_word(status)}"
        return f"Init:{place}/{len(pod.init_containers)}"
    return None


def _container_word(status: ContainerStatus) -> str:
    if status.state == _TERMINATED and not status.reason:
        return f"Signal:{status.signal}" if status.signal else f"ExitCode:{status.exit_code or 0}"
    return status.reason if status.state in (_WAITING, _TERMINATED) else ""


def node_wait(pod: Pod, now: float) -> float | None:
    """Seconds from a pod's creation until it was bound, or until now while it is not.

    None if that is no longer known, and for a pod that ended without a node.
    """
    if pod.created_at is None:
        return None
    if not pod.node:
        return None if pod.is_finished else max(0.0, now - pod.created_at)
    bound = (
        next(
            (
                each.at
                for each in pod.conditions
                if each.type == "PodScheduled" and each.status == "True"
            ),
            None,
        )
        or pod.started_at
    )
    return None if bound is None else max(0.0, bound - pod.created_at)


def ended_at(pod: Pod) -> float | None:
    """When the last container of a finished pod ended (epoch seconds); None for other pods."""
    ends = [each.finished_at for each in pod.statuses if each.finished_at is not None]
    return max(ends, default=None) if pod.is_finished else None


def is_ready(pod: Pod) -> bool:
    """According to its kubelet."""
    return any(
        condition.type == "Ready" and condition.status == "True" for condition in pod.conditions
    )
