"""The quota controller as a process: its decider, driven on a real cluster, and its metrics.

`apps/controller` drives it; `rules/quota/machine` decides. Two things are special about quota. A
claim is a condition, but evictions wait for it, so it is sent as a change and not as a report. And
a controller works by itself: its Lease is long, so that a restarted API server does not cost it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from socket import socket
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from starlette.requests import Request
from starlette.responses import Response

from fairlead.apps.controller import Controller, ControllerHooks, is_report
from fairlead.apps.leader import BACKGROUND_LEASE_TIMES, LeaseTimes
from fairlead.apps.metrics_page import process_metrics
from fairlead.apps.service import Probes, ServedApp, pages_app
from fairlead.model.actions import AdmitPod, EvictPod, Outcome, QuotaAction, Result, SetPodCondition
from fairlead.model.installation import OwnAccounts
from fairlead.model.metric import MetricName
from fairlead.model.quota.plan import Reason
from fairlead.ports import QuotaApi
from fairlead.rules.quota.admission import DEFAULT_ACCOUNTS
from fairlead.rules.quota.machine import QuotaMachine
from fairlead.wire.metrics.prom_text import CONTENT_TYPE

ADMISSIONS: Final = MetricName(
    "fairlead_quota_admissions_total", "counter", (), "Pods whose quota gate was taken away."
)
EVICTIONS: Final = MetricName(
    "fairlead_quota_evictions_total", "counter", (), "Pods evicted to give quota back."
)
REFUSALS: Final = MetricName(
    "fairlead_quota_eviction_refusals_total",
    "counter",
    (),
    "Evictions that the API server put off, as for a PodDisruptionBudget (429).",
)
LEADING: Final = MetricName(
    "fairlead_quota_leading", "gauge", (), "1 when this controller holds the lease and may write."
)
NAMES: Final = (ADMISSIONS, EVICTIONS, REFUSALS, LEADING)

disable_created_metrics()  # type: ignore[no-untyped-call]


class QuotaController:
    """`monotonic`: seconds of a clock that nothing sets, for the Lease; `now` gives epoch seconds.

    `own`: the namespaces of the installation, whose pods quota leaves alone. `unready`: see
    `Controller`.
    """

    def __init__(
        self,
        api: QuotaApi,
        identity: str,
        *,
        own: OwnAccounts = DEFAULT_ACCOUNTS,
        times: LeaseTimes = BACKGROUND_LEASE_TIMES,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.machine = QuotaMachine(api.workload_kinds, own.namespaces)
        self._controller = Controller(
            self.machine,
            api.follow,
            api.apply,
            api,
            identity,
            times=times,
            hooks=ControllerHooks(looked=self._looked, ended=self._ended, is_report=_is_report),
            monotonic=monotonic,
            now=now,
        )
        self.leader = self._controller.leader
        self.run = self._controller.run
        self.figures = _Figures(lambda: self.leader.is_held)
        self._now = now
        self._created: dict[str, float] = {}

    @property
    def unready(self) -> str:
        return self._controller.unready

    def service(self, sock: socket) -> ServedApp:
        """This controller as a server on a bound socket: probes and metrics."""
        probes = Probes(unready=lambda: self.unready)
        return ServedApp(
            app=pages_app("quota controller", probes, self.figures.page),
            sock=sock,
            loops=(self.run,),
            probes=probes,
        )

    def _looked(self, actions: Iterable[QuotaAction], seconds: float) -> None:
        """Keep the creation time of pods admitted now: they may be gone when the answer arrives."""
        self.figures.plan_seconds.observe(seconds)
        known = self.machine.feed.known
        for action in actions:
            if isinstance(action, AdmitPod) and (pod := known.get(action.target.uid)) is not None:
                self._created[pod.uid] = pod.created_at

    def _ended(self, action: QuotaAction, outcome: Outcome) -> None:
        figures = self.figures
        if isinstance(action, AdmitPod):
            created = self._created.pop(action.target.uid, None)
            if outcome.result is Result.DONE:
                figures.admissions.inc()
                if created is not None:
                    figures.wait_seconds.observe(max(0.0, self._now() - created))
        elif isinstance(action, EvictPod):
            if outcome.is_busy:
                figures.refusals.inc()
            elif outcome.result is Result.DONE and not action.is_trial:
                figures.evictions.inc()


def _is_report(action: QuotaAction) -> bool:
    """A claim is a change: evictions wait for it."""
    is_claim = (
        isinstance(action, SetPodCondition)
        and action.condition.reason == Reason.WAITING_FOR_EVICTIONS
    )
    return is_report(action) and not is_claim


class _Figures:
    """What the controller did, and how long that took.

    See docs/spec/quota.md#quota-board-and-metrics.
    """

    def __init__(self, is_leading: Callable[[], bool]) -> None:
        registry = self._registry = CollectorRegistry()
        self.admissions, self.evictions, self.refusals = (
            Counter(each.name.removesuffix("_total"), each.help, registry=registry)
            for each in (ADMISSIONS, EVICTIONS, REFUSALS)
        )
        self.plan_seconds = Histogram(
            "fairlead_quota_plan_seconds",
            "How long a plan took.",
            buckets=_PLAN_BUCKETS,
            registry=registry,
        )
        self.wait_seconds = Histogram(
            "fairlead_quota_wait_seconds",
            "From a pod's creation until its quota gate was gone.",
            buckets=_WAIT_BUCKETS,
            registry=registry,
        )
        Gauge(LEADING.name, LEADING.help, registry=registry).set_function(
            lambda: float(is_leading())
        )

    async def page(self, request: Request) -> Response:
        return Response(
            generate_latest(self._registry) + process_metrics(),
            headers={"content-type": CONTENT_TYPE},
        )


_PLAN_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5)
_WAIT_BUCKETS: Final = (0.05, 0.1, 0.15, 0.25, 0.5, 1, 5, 30, 60, 300, 1800, 7200, 86400)
