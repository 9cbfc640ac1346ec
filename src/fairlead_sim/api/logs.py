"""A container's lines over HTTP: whole, the tail, since a time, or followed while it runs.

Also the answer to requests that lead to a container's process or network: it has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, Protocol

from starlette.responses import Response
from starlette.types import ASGIApp

from fairlead.ports import Clock
from fairlead.wire.kube.time import parse_time, render_micro_time
from fairlead_sim.api.reads import Reads
from fairlead_sim.api.request import ReceivedRequest
from fairlead_sim.api.watch import LineStream
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.status import ApiStatus, bad_request

IDLE: Final = ("attach", "ephemeralcontainers", "portforward", "proxy")
"""Subresources of pods that lead into a container; nothing runs there."""
_FOLLOW_SECONDS: Final = 0.2
_STATUS_LISTS = ("containerStatuses", "initContainerStatuses")


def not_running(what: str, pod: Object) -> ApiStatus:
    """The refusal of `kubectl attach` and similar requests."""
    name = pod["metadata"]["name"]
    why = (
        f"pod {name} runs in a simulated cluster, where containers are scripts without a process "
        f"or a network: no {what}"
    )
    return ApiStatus(501, "NotImplemented", why, {"name": name, "kind": "pods"})


class PodLogs(Protocol):
    """What containers wrote."""

    def lines(
        self, namespace: str, pod: str, container: str, previous: bool
    ) -> Sequence[tuple[float, str]] | None:
        """(epoch seconds, line) oldest first; None when there is no such run of the container.

        It may only grow at its end.
        """
        ...


class NoLogs:
    """A cluster whose containers write nothing."""

    def lines(
        self, namespace: str, pod: str, container: str, previous: bool
    ) -> Sequence[tuple[float, str]] | None:
        return None if previous else ()


class Logs:
    """`pods/log` over the lines that the cluster's kubelets keep."""

    def __init__(self, lines: PodLogs, reads: Reads, clock: Clock, ending: asyncio.Event) -> None:
        self._lines = lines
        self._reads = reads
        self._clock = clock
        self._ending = ending

    def open(self, request: ReceivedRequest) -> ASGIApp:
        """The stream of one request.

        Refuses (400) a container that does not exist, is not named, or has not started.
        """
        pod = self._reads.existing(request)
        container = container_name(pod, request.query.get("container", ""))
        since = self._since(request)
        if not pod["spec"].get("nodeName"):
            return Response(status_code=204)
        previous = request.is_true("previous")
        if not previous:
            _check_started(pod, container)
        if self._lines.lines(request.namespace, request.path.name, container, previous) is None:
            name = request.path.name
            raise bad_request(
                f'previous terminated container "{container}" in pod "{name}" not found'
            )
        return LineStream(self._pieces(request, container, since), "text/plain", self._ending)

    def _since(self, request: ReceivedRequest) -> float:
        seconds, moment = request.number("sinceSeconds"), request.query.get("sinceTime", "")
        if seconds is not None:
            return self._clock.now() - seconds
        try:
            return parse_time(moment) if moment else float("-inf")
        except ValueError as error:
            detail = (
                f'parsing time "{moment}" as "2006-01-02T15:04:05Z07:00": cannot parse "{moment}" '
                'as "2006"'
            )
            raise bad_request(detail) from error

    async def _pieces(
        self, request: ReceivedRequest, container: str, since: float
    ) -> AsyncIterator[bytes]:
        previous, stamped, tail = (
            request.is_true("previous"),
            request.is_true("timestamps"),
            request.number("tailLines"),
        )

        def lines() -> list[tuple[float, str]]:
            found = self._lines.lines(request.namespace, request.path.name, container, previous)
            return [line for line in found or () if line[0] >= since]

        detail = lines()
        yield _render(detail if tail is None else detail[max(0, len(detail) - tail) :], stamped)
        count = len(detail)
        while request.is_true("follow") and not previous:
            is_over = not self._is_running(request, container)
            now = lines()
            if now[count:]:
                yield _render(now[count:], stamped)
            count = len(now)
            if is_over:
                return
            await asyncio.sleep(_FOLLOW_SECONDS)

    def _is_running(self, request: ReceivedRequest, container: str) -> bool:
        try:
            state = _state(self._reads.existing(request), container)
        except ApiStatus:
            return False
        return "running" in state


def _render(lines: list[tuple[float, str]], stamped: bool) -> bytes:
    return "".join(
        f"{render_micro_time(at)} {line}\n" if stamped else f"{line}\n" for at, line in lines
    ).encode()


def container_name(pod: Object, asked: str) -> str:
    """The container that a request means; raises 400 if it is none of the pod's."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    names = [container["name"] for container in spec.get("containers", ())]
    init_names = [container["name"] for container in spec.get("initContainers") or ()]
    if asked:
        if asked not in names + init_names:
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    if len(names) == 1:
        return str(names[0])
    init_part = f" or one of the init containers: [{' '.join(init_names)}]" if init_names else ""
    raise bad_request(
        f"a container name must be specified for pod {name}, choose one of: "
        f"[{' '.join(names)}]{init_part}"
    )


def _state(pod: Object, container: str) -> Any:
    statuses = [status for key in _STATUS_LISTS for status in pod.get("status", {}).get(key) or ()]
    return next(
        (status.get("state") or {} for status in statuses if status.get("name") == container), {}
    )


def _check_started(pod: Object, container: str) -> None:
    waiting = _state(pod, container).get("waiting")
    statuses = [status for key in _STATUS_LISTS for status in pod.get("status", {}).get(key) or ()]
    has_run = any(
        status.get("name") == container and status.get("lastState") for status in statuses
    )
    if waiting and not has_run:
        name = pod["metadata"]["name"]
        raise bad_request(
            f'container "{container}" in pod "{name}" is waiting to start: '
            f"{waiting.get('reason', 'ContainerCreating')}"
        )
