"""The people controller as a process: its decider, driven on a real cluster, and its metrics.

`apps/controller` drives it; `rules/people/decider` decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from socket import socket
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from fairlead.apps.controller import Controller, ControllerHooks
from fairlead.apps.leader import BACKGROUND_LEASE_TIMES, LeaseTimes
from fairlead.apps.metrics_page import process_metrics
from fairlead.apps.service import Probes, ServedApp, pages_app
from fairlead.model.actions import Outcome, Result
from fairlead.model.installation import OwnAccounts
from fairlead.model.metric import MetricName
from fairlead.model.people.actions import PeopleAction, WriteGroupStatus, WriteUserStatus
from fairlead.ports import PeopleApi
from fairlead.rules.people.decider import PeopleDecider
from fairlead.wire.metrics.prom_text import CONTENT_TYPE

WRITES: Final = MetricName(
    "fairlead_people_writes_total",
    "counter",
    ("result",),
    "Calls by which the people controller changed objects; result: done, refused or unknown.",
)
LEADING: Final = MetricName(
    "fairlead_people_leading", "gauge", (), "1 when this controller holds the lease and may write."
)
NAMES: Final = (WRITES, LEADING)


class PeopleController:
    """`monotonic`: seconds of a clock that nothing sets, for the Lease; `now` gives epoch seconds.

    `own`: the namespaces of the installation. `unready`: see `Controller`.
    """

    def __init__(
        self,
        api: PeopleApi,
        identity: str,
        *,
        own: OwnAccounts | None = None,
        times: LeaseTimes = BACKGROUND_LEASE_TIMES,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        spaces = (own or OwnAccounts()).namespaces
        self._controller = Controller(
            PeopleDecider(api.work_kinds, spaces),
            api.follow,
            api.apply,
            api,
            identity,
            times=times,
            hooks=ControllerHooks(ended=self._ended, is_report=_is_report),
            monotonic=monotonic,
            now=now,
        )
        self.leader = self._controller.leader
        self.run = self._controller.run
        registry = self._registry = CollectorRegistry()
        self._writes = Counter(
            WRITES.name.removesuffix("_total"), WRITES.help, WRITES.labels, registry=registry
        )
        Gauge(LEADING.name, LEADING.help, registry=registry).set_function(
            lambda: float(self.leader.is_held)
        )

    @property
    def unready(self) -> str:
        return self._controller.unready

    def service(self, sock: socket) -> ServedApp:
        """This controller as a server on a bound socket: probes and metrics."""
        probes = Probes(unready=lambda: self.unready)
        return ServedApp(
            app=pages_app("people controller", probes, self.page),
            sock=sock,
            loops=(self.run,),
            probes=probes,
        )

    async def page(self, request: Request) -> Response:
        """Its metrics."""
        return Response(
            generate_latest(self._registry) + process_metrics(),
            headers={"content-type": CONTENT_TYPE},
        )

    def _ended(self, action: PeopleAction, outcome: Outcome) -> None:
        result = outcome.result
        word = result.value if result in (Result.REFUSED, Result.UNKNOWN) else Result.DONE.value
        self._writes.labels(word).inc()


def _is_report(action: PeopleAction) -> bool:
    return isinstance(action, WriteUserStatus | WriteGroupStatus)
