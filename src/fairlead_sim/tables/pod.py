"""The table of pods, with the word for a pod's state.

The STATUS word is no field of the pod: it is found by walking init containers, containers and the
deletion mark, in this order.
"""

from __future__ import annotations

from typing import Any

from fairlead_sim.schema.cells import (
    NAME,
    NONE,
    Layout,
    Object,
    age,
    columns,
    part,
    since,
    text,
    true_condition,
)

_TERMINAL = ("Succeeded", "Failed")
_DONE = {
    "Succeeded": ("Succeeded", "The pod has completed successfully."),
    "Failed": ("Failed", "The pod failed."),
}


def _cells(pod: Object, now: float) -> list[Any]:
    word, ready, restarts, restarted_at = pod_status(pod)
    shown = (
        f"{restarts} ({since(restarted_at, now)} ago)"
        if restarts and restarted_at
        else str(restarts)
    )
    return [
        pod["metadata"]["name"],
        f"{ready}/{_container_count(pod)}",
        word,
        shown,
        age(pod, now),
        _first_ip(pod),
        text(pod, "spec", "nodeName", default=NONE),
        text(pod, "status", "nominatedNodeName", default=NONE),
        _readiness_gates(pod),
    ]


def pod_status(pod: Object) -> tuple[str, int, int, str]:
    """STATUS word, ready containers, restarts, and end of the last restarted container.

    The end is `""` if no container restarted.
    """
    phase = text(pod, "status", "phase")
    word = text(pod, "status", "reason") or phase
    conditions = part(pod, "status", "conditions") or ()
    if any(
        condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated"
        for condition in conditions
    ):
        word = "SchedulingGated"
    init_word, ready, restarts, restarted_at = _init_status(pod)
    if init_word and not true_condition(pod, "Initialized"):
        word = init_word
    else:
        word, more_ready, restarts, restarted_at = _main_status(pod, init_word or word)
        ready += more_ready
    if part(pod, "metadata", "deletionTimestamp"):
        if text(pod, "status", "reason") == "NodeLost":
            word = "Unknown"
        elif phase not in _TERMINAL:
            word = "Terminating"
    return word, ready, restarts, restarted_at


def _container_count(pod: Object) -> int:
    return len(part(pod, "spec", "containers") or ()) + len(_sidecar_names(pod))


def _sidecar_names(pod: Object) -> set[str]:
    """Init containers that keep running beside the others."""
    return {
        entry["name"]
        for entry in part(pod, "spec", "initContainers") or ()
        if entry.get("restartPolicy") == "Always"
    }


def _init_status(pod: Object) -> tuple[str, int, int, str]:
    """The word while the pod initializes (`""` when that is over), ready sidecars, restarts and the
    last restart of all init containers.
    """
    sidecars = _sidecar_names(pod)
    total = len(part(pod, "spec", "initContainers") or ())
    ready = restarts = 0
    restarted_at = ""
    for index, status in enumerate(part(pod, "status", "initContainerStatuses") or ()):
        restarts += status.get("restartCount") or 0
        restarted_at = max(restarted_at, _last_end(status))
        state = status.get("state") or {}
        if part(state, "terminated", "exitCode") == 0:
            continue
        if status.get("name") in sidecars and status.get("started"):
            ready += bool(status.get("ready"))
            continue
        return _init_word(state, index, total), ready, restarts, restarted_at
    return "", ready, restarts, restarted_at


def _init_word(state: Object, index: int, total: int) -> str:
    ended = state.get("terminated")
    if ended:
        return "Init:" + _end_word(ended)
    reason = text(state, "waiting", "reason")
    return f"Init:{reason}" if reason and reason != "PodInitializing" else f"Init:{index}/{total}"


def _end_word(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return (
        f"Signal:{ended['signal']}"
        if ended.get("signal")
        else f"ExitCode:{ended.get('exitCode', 0)}"
    )


def _last_end(status: Object) -> str:
    return text(status, "lastState", "terminated", "finishedAt")


def _main_status(pod: Object, word: str) -> tuple[str, int, int, str]:
    """The same for the containers; the first container that
    waits or ended names the pod's state.
    """
    sidecars = _sidecar_names(pod)
    statuses = [
        status
        for status in part(pod, "status", "initContainerStatuses") or ()
        if status.get("name") in sidecars
    ]
    restarts = sum(status.get("restartCount") or 0 for status in statuses)
    restarted_at = max((_last_end(status) for status in statuses), default="")
    ready, error = 0, ""
    for status in reversed(part(pod, "status", "containerStatuses") or ()):
        restarts += status.get("restartCount") or 0
        restarted_at = max(restarted_at, _last_end(status))
        state = status.get("state") or {}
        if text(state, "waiting", "reason"):
            word = text(state, "waiting", "reason")
        elif state.get("terminated"):
            word = _end_word(state["terminated"])
            error = word if state["terminated"].get("exitCode") else error
        elif status.get("ready") and "running" in state:
            ready += 1
    if word == "Completed":
        word = _still_running_word(pod, ready, error)
    return word, ready, restarts, restarted_at


def _still_running_word(pod: Object, ready: int, error: str) -> str:
    """One container is done, others may not be."""
    if ready and true_condition(pod, "Ready"):
        return "Running"
    return error or ("NotReady" if ready else "Completed")


def _first_ip(pod: Object) -> str:
    addresses = part(pod, "status", "podIPs") or ()
    return (addresses[0].get("ip") if addresses else "") or NONE


def _readiness_gates(pod: Object) -> str:
    gates = part(pod, "spec", "readinessGates") or ()
    met = sum(true_condition(pod, gate.get("conditionType", "")) for gate in gates)
    return f"{met}/{len(gates)}" if gates else NONE


LAYOUT = Layout(
    columns(
        (
            NAME,
            "Ready",
            "Status",
            "Restarts",
            "Age",
            "+IP",
            "+Node",
            "+Nominated Node",
            "+Readiness Gates",
        )
    ),
    _cells,
    lambda pod: _DONE.get(text(pod, "status", "phase")),
)
