"""The status of a pod, rendered from the runs of its containers as a kubelet writes it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from fairlead.wire.kube.time import render_time
from fairlead_sim.kubelet.behaviour import Behaviour
from fairlead_sim.objects.chance import digest
from fairlead_sim.objects.conditions import with_condition

Object = dict[str, Any]

WAITING, RUNNING, TERMINATED = "waiting", "running", "terminated"


@dataclass(slots=True)
class ContainerRun:
    """One container of one pod in its kubelet.

    `failures` counts crashes in a row, for the back-off.
    """

    name: str
    image: str
    behaviour: Behaviour
    is_sidecar: bool = False
    may_pull: bool = True
    state: str = WAITING
    reason: str = "ContainerCreating"
    message: str = ""
    restarts: int = 0
    failures: int = 0
    started_at: float = 0.0
    finished_at: float = 0.0
    exit_code: int = 0
    last: Object | None = None

    @property
    def is_done(self) -> bool:
        return self.state == TERMINATED and self.exit_code == 0

    def wait(self, reason: str, message: str = "") -> None:
        if self.state == TERMINATED:
            self.last = {TERMINATED: _terminated(self)}
        self.state, self.reason, self.message = WAITING, reason, message

    def run(self, now: float) -> None:
        if self.state == TERMINATED:
            self.last = {TERMINATED: _terminated(self)}
        self.state, self.started_at, self.message = RUNNING, now, ""

    def end(self, now: float, exit_code: int) -> None:
        self.state, self.finished_at, self.exit_code = TERMINATED, now, exit_code
        self.reason = _REASONS.get(exit_code, "Error")


_PASSING = (
    "ContainerCreating",
    "PodInitializing",
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "CrashLoopBackOff",
)
NOT_STARTED = "device plugin PreStartContainer rpc failed with err: "
"""How a kubelet's message begins if a device plugin does not let a container start."""
_REASONS = {0: "Completed", 137: "Error"}


@dataclass(slots=True)
class PodRun:
    """One pod on its node.

    `phase` only moves forward: Pending, Running, then Succeeded or Failed.
    """

    namespace: str
    name: str
    uid: str
    node: str
    host_ip: str
    restart_policy: str
    inits: list[ContainerRun]
    apps: list[ContainerRun]
    admitted_at: float
    pod_ip: str = ""
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    is_ending: bool = False
    is_rejected: bool = False
    pulled: set[str] = field(default_factory=set)
    """Images that were pulled for this pod and not started yet."""
    failed_pulls: int = 0

    @property
    def containers(self) -> Sequence[ContainerRun]:
        return (*self.inits, *self.apps)

    @property
    def is_stuck(self) -> bool:
        """Whether a container waits in vain: for a volume, a Secret, a valid image name."""
        return any(
            run.state == WAITING and run.reason not in _PASSING and NOT_STARTED not in run.message
            for run in self.containers
        )

    @property
    def is_initialized(self) -> bool:
        return all(run.is_done or (run.is_sidecar and run.state == RUNNING) for run in self.inits)

    @property
    def has_begun(self) -> bool:
        """Whether an app container was ever started."""
        return any(run.state != WAITING or run.restarts or run.last for run in self.apps)

    @property
    def is_finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    def reject(self, reason: str, message: str) -> None:
        """The node refuses the pod: it has failed before it had containers."""
        self.phase, self.reason, self.message, self.is_rejected = "Failed", reason, message, True

    def settle(self) -> None:
        """Move the phase on, as the state of the containers demands."""
        if self.is_finished:
            return
        if all(run.state == TERMINATED for run in self.apps) and not any(
            self.will_restart(run) for run in self.apps
        ):
            self.phase = "Succeeded" if all(run.exit_code == 0 for run in self.apps) else "Failed"
        elif self.has_begun:
            self.phase = "Running"

    def will_restart(self, run: ContainerRun) -> bool:
        if self.is_ending:
            return False
        if run.is_sidecar or self.restart_policy == "Always":
            return True
        return self.restart_policy == "OnFailure" and run.exit_code != 0


def render_status(run: PodRun, before: Object, now: float) -> Object:
    """The whole status; conditions keep their transition times from `before`, the status so far."""
    if run.is_rejected:
        return _rejected(run, before)
    status: Object = {
        "phase": run.phase,
        "conditions": _conditions(run, before.get("conditions") or [], now),
    }
    if "qosClass" in before:
        status["qosClass"] = before["qosClass"]
    if run.reason:
        status |= {"reason": run.reason, "message": run.message}
    status |= {
        "hostIP": run.host_ip,
        "hostIPs": _addresses(run.host_ip),
        "startTime": render_time(run.admitted_at),
    }
    if run.pod_ip:
        status |= {"podIP": run.pod_ip, "podIPs": [{"ip": run.pod_ip}]}
    if run.inits:
        status["initContainerStatuses"] = [
            _container_status(run, container) for container in run.inits
        ]
    status["containerStatuses"] = [_container_status(run, container) for container in run.apps]
    return status


def _rejected(run: PodRun, before: Object) -> Object:
    """Of a pod that never came to its node: why, and what was known before.

    Containers that were never tried have no status.
    """
    kept: Object = {key: before[key] for key in ("conditions", "qosClass") if key in before}
    return {
        "phase": run.phase,
        **kept,
        "reason": run.reason,
        "message": run.message,
        "startTime": render_time(run.admitted_at),
    }


def _container_status(pod: PodRun, run: ContainerRun) -> Object:
    is_running = run.state == RUNNING
    is_plain_init = run in pod.inits and not run.is_sidecar
    status: Object = {
        "name": run.name,
        "image": run.image,
        "imageID": "",
        "ready": run.is_done if is_plain_init else is_running,
        "started": is_running,
        "restartCount": run.restarts,
        "state": _state(pod, run),
        "lastState": _last_state(pod, run),
    }
    if run.state != WAITING or run.restarts:
        status["containerID"] = _container_id(pod.uid, run.name, run.restarts)
        status["imageID"] = _image_id(run.image)
    return status


def _state(pod: PodRun, run: ContainerRun) -> Object:
    if run.state == RUNNING:
        return _running_since(render_time(run.started_at))
    if run.state == TERMINATED:
        return {
            TERMINATED: {
                **_terminated(run),
                "containerID": _container_id(pod.uid, run.name, run.restarts),
            }
        }
    waiting = {"reason": run.reason}
    return {WAITING: {**waiting, "message": run.message} if run.message else waiting}


def _last_state(pod: PodRun, run: ContainerRun) -> Object:
    """Of the run before: one that waits for its next try has not been counted as started again."""
    if run.last is None:
        return {}
    ended = run.restarts if run.state == WAITING else run.restarts - 1
    return {
        TERMINATED: {**run.last[TERMINATED], "containerID": _container_id(pod.uid, run.name, ended)}
    }


@lru_cache(maxsize=1024)
def _running_since(time: str) -> Object:
    return {RUNNING: {"startedAt": time}}


@lru_cache(maxsize=8192)
def _addresses(ip: str) -> list[Object]:
    return [{"ip": ip}]


def _terminated(run: ContainerRun) -> Object:
    return {
        "exitCode": run.exit_code,
        "reason": run.reason,
        "startedAt": render_time(run.started_at),
        "finishedAt": render_time(run.finished_at),
    }


def _conditions(run: PodRun, before: list[Object], now: float) -> list[Object]:
    reason, message = _not_ready(run)
    ready, has_sandbox = "False" if reason else "True", bool(run.pod_ip) and not run.is_finished
    conditions = (
        ("PodScheduled", "True", "", ""),
        ("PodReadyToStartContainers", "True" if has_sandbox else "False", "", ""),
        ("Initialized", *_initialized(run)),
        ("ContainersReady", ready, reason, message),
        ("Ready", ready, reason, message),
    )
    return (
        _with_all(before, conditions, render_time(now))
        if before
        else _first_conditions(conditions, render_time(now))
    )


_ConditionRows = tuple[tuple[str, str, str, str], ...]
"""Conditions by type, status, reason, message."""


def _with_all(before: list[Object], conditions: _ConditionRows, time: str) -> list[Object]:
    for each in conditions:
        before = with_condition(before, *each, time)
    return before


@lru_cache(maxsize=256)
def _first_conditions(conditions: _ConditionRows, time: str) -> list[Object]:
    """One list for all pods that begin alike at the same time: a settled world's fifty thousand
    would hold five conditions each.
    """
    return _with_all([], conditions, time)


def _initialized(run: PodRun) -> tuple[str, str, str]:
    if run.is_initialized or run.has_begun:  # a sidecar that is started again takes nothing back
        return "True", "PodCompleted" if run.phase == "Succeeded" else "", ""
    waiting = " ".join(container.name for container in run.inits if not container.is_done)
    return "False", "ContainersNotInitialized", f"containers with incomplete status: [{waiting}]"


def _not_ready(run: PodRun) -> tuple[str, str]:
    if run.phase == "Succeeded":
        return "PodCompleted", ""
    if run.phase == "Failed":
        return "PodFailed", ""
    watched = (*(container for container in run.inits if container.is_sidecar), *run.apps)
    unready = " ".join(container.name for container in watched if container.state != RUNNING)
    return (
        ("ContainersNotReady", f"containers with unready status: [{unready}]")
        if unready
        else ("", "")
    )


def _container_id(uid: str, name: str, restarts: int) -> str:
    return f"containerd://{_hex64(uid, name, restarts)}"


@lru_cache(maxsize=1024)
def _image_id(image: str) -> str:
    """Name and digest, without the tag."""
    folder, slash, name = image.partition("@")[0].rpartition("/")
    return f"{folder}{slash}{name.partition(':')[0]}@sha256:{_hex64(image)}"


def _hex64(*names: object) -> str:
    return digest(0, *names).hex() + digest(1, *names).hex()
