"""The state of a pod's containers from its status alone, for a kubelet that starts. Pure.

The back-off is not in the status: the number of restarts stands for the crashes in a row.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from fairlead.wire.kube.time import parse_time
from fairlead_sim.kubelet.behaviour import Behaviour
from fairlead_sim.kubelet.pod_status import RUNNING, TERMINATED, ContainerRun, PodRun
from fairlead_sim.objects.conditions import status_of

Object = dict[str, Any]


def take_status(run: PodRun, pod: Object) -> PodRun:
    """The run of a pod as its status describes it.

    A pod without `startTime` has not been admitted yet.
    """
    status = status_of(pod)
    run.phase = str(status.get("phase") or "Pending")
    run.reason, run.message = str(status.get("reason") or ""), str(status.get("message") or "")
    run.pod_ip, run.host_ip = (
        str(status.get("podIP") or ""),
        str(status.get("hostIP") or run.host_ip),
    )
    run.is_ending = "deletionTimestamp" in pod["metadata"]
    if status.get("startTime"):
        run.admitted_at = parse_time(status["startTime"])
    entries = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    by_name = {entry["name"]: entry for entry in entries}
    run.is_rejected = run.phase == "Failed" and not entries
    for container in run.containers:
        if container.name in by_name:
            _take_container(container, by_name[container.name])
    return run


def _take_container(container: ContainerRun, entries: Object) -> None:
    container.restarts = container.failures = int(entries.get("restartCount") or 0)
    container.last = entries.get("lastState") or None
    state = entries.get("state") or {}
    if RUNNING in state:
        container.state, container.started_at = RUNNING, parse_time(state[RUNNING]["startedAt"])
    elif TERMINATED in state:
        ended = state[TERMINATED]
        container.state, container.exit_code = TERMINATED, int(ended.get("exitCode") or 0)
        container.reason, container.message = (
            str(ended.get("reason") or ""),
            str(ended.get("message") or ""),
        )
        container.started_at, container.finished_at = (
            _time_of(ended, "startedAt"),
            _time_of(ended, "finishedAt"),
        )
    elif waiting := state.get("waiting"):
        container.reason, container.message = (
            str(waiting.get("reason") or container.reason),
            str(waiting.get("message") or ""),
        )
        ended = (container.last or {}).get(TERMINATED) or {}
        container.finished_at = _time_of(ended, "finishedAt")
        container.behaviour = _as_before(container, ended)


def _as_before(container: ContainerRun, ended: Object) -> Behaviour:
    """For an image whose name does not define it: what could not be pulled cannot be pulled, and
    what crashed again and again crashes again.
    """
    if container.reason in ("ErrImagePull", "ImagePullBackOff"):
        return replace(container.behaviour, can_pull=False)
    if container.reason == "CrashLoopBackOff" and ended and container.behaviour.run_seconds is None:
        seconds = max(0.0, container.finished_at - _time_of(ended, "startedAt"))
        return replace(
            container.behaviour, run_seconds=seconds, exit_code=int(ended.get("exitCode") or 0)
        )
    return container.behaviour


def _time_of(ended: Object, key: str) -> float:
    return parse_time(ended[key]) if ended.get(key) else 0.0
