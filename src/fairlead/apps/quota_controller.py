"""The driver of the quota machine on a real cluster: what the API server tells goes in, API calls come out.

Who does not hold the Lease follows nothing and writes nothing. Calls are sent side by side, in the order in
which the machine gave them out, deeds before words: while an admission or an eviction waits, only
a few conditions and Events go beside it. What must not be sent before another call has ended, the machine
holds back until it is told how that one ended; so it does with long rows of conditions and Events.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from socket import socket
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from fairlead.apps.leader import UNHURRIED, Leader, LeaseTimes
from fairlead.apps.metrics_page import process_metrics
from fairlead.apps.service import Probes, ServedApp, pages_app, together
from fairlead.model.actions import AdmitPod, EvictPod, Outcome, QuotaAction, RecordObjectEvent, Result, SetPodCondition, WriteTreeStatus
from fairlead.model.metric import MetricName
from fairlead.model.quota.plan import Reason
from fairlead.ports import QuotaApi
from fairlead.rules.quota.machine import QuotaMachine
from fairlead.wire.metrics.prom_text import CONTENT_TYPE

WRITE_SECONDS: Final = 3.0
"""Within so long the API server decides a write, so that none of a dead controller comes true later."""
COALESCE_SECONDS: Final = 0.03
FULL_LOOK_SECONDS: Final = 30.0
STANDBY_SECONDS: Final = 0.1
WIDTH: Final = 80
"""So many calls are on their way at once."""
WORDS_BESIDE: Final = 4
"""Of these, conditions, Events and the tree's status, while deeds wait."""
LONG_LOOK_SECONDS: Final = 0.2
"""After one that took longer calls go on for as long before the next, which keeps them waiting."""
LONGEST_REST_SECONDS: Final = 1.0
LISTING: Final = "the cluster is being listed"
ADMISSIONS: Final = MetricName("fairlead_quota_admissions_total", "counter", (), "Pods whose quota gate was taken away.")
EVICTIONS: Final = MetricName("fairlead_quota_evictions_total", "counter", (), "Pods evicted to give quota back.")
REFUSALS: Final = MetricName(
    "fairlead_quota_eviction_refusals_total", "counter", (), "Evictions that the API server put off, as for a PodDisruptionBudget (429)."
)
LEADING: Final = MetricName("fairlead_quota_leading", "gauge", (), "1 when this controller holds the lease and may write.")
NAMES: Final = (ADMISSIONS, EVICTIONS, REFUSALS, LEADING)
_LEASE_OVER: Final = Outcome(Result.REFUSED, "the lease has run out")
_log = logging.getLogger(__name__)

disable_created_metrics()  # type: ignore[no-untyped-call]


class QuotaController:
    """`unready`: why nobody should count on it, "" = it works, or another holds the Lease.

    `monotonic` is of the Lease, `now` gives epoch seconds.
    """

    def __init__(
        self,
        api: QuotaApi,
        identity: str,
        *,
        times: LeaseTimes = UNHURRIED,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._changed = asyncio.Event()
        self.machine = QuotaMachine(self._changed.set, api.workload_kinds)
        self.leader = Leader(api, identity, self._taken, self._is_idle, monotonic, times)
        self._api = api
        self._now = now
        self._monotonic = monotonic
        self._is_new = False
        self._is_ending = False
        self._deeds: deque[QuotaAction] = deque()
        self._words: deque[QuotaAction] = deque()
        self._calls: set[asyncio.Task[None]] = set()
        self._telling: set[asyncio.Task[None]] = set()
        self._rest = COALESCE_SECONDS
        self._undecided_until = float("-inf")
        self._created: dict[str, float] = {}
        self._bugs: asyncio.Queue[BaseException] = asyncio.Queue()
        self.figures = _Figures(lambda: self.leader.is_held)

    @property
    def unready(self) -> str:
        leader = self.leader
        if leader.is_held:
            return "" if self.machine.feed.is_rebuilt else LISTING
        return "" if leader.holder not in ("", leader.identity) else leader.trouble or "nobody holds the lease yet"

    def service(self, sock: socket) -> ServedApp:
        """This controller as a server on a bound socket: probes and metrics."""
        probes = Probes(unready=lambda: self.unready)
        return ServedApp(app=pages_app("quota controller", probes, self.figures.page), sock=sock, loops=(self.run,), probes=probes)

    async def run(self) -> None:
        """Until cancelled; then what is on its way is finished and the Lease is given back."""
        try:
            await together(self.leader.run(), self._follow_for_ever(), self._look_for_ever(), self._fail())
        finally:
            self._is_ending = True
            while self._calls:
                await asyncio.wait(self._calls)
            await self.leader.release()

    # --- following ------------------------------------------------------------------------------------------

    async def _follow_for_ever(self) -> None:
        """Follow while we lead; a Lease that comes, anew or again, begins with new lists."""
        while True:
            while not self.leader.is_held:  # noqa: ASYNC110 - time takes it away, nobody tells
                await asyncio.sleep(STANDBY_SECONDS)
            self._begin()
            following = asyncio.ensure_future(self._api.follow(self.machine.feed.observe))
            ending = asyncio.ensure_future(self._until_lost())
            try:
                done, _ = await asyncio.wait((following, ending), return_when=asyncio.FIRST_COMPLETED)
                if following in done:
                    following.result()
            finally:
                for task in (following, ending):
                    task.cancel()
                await asyncio.wait((following, ending))

    def _begin(self) -> None:
        """What was known may be old."""
        self._is_new = False
        self._created.clear()
        self.machine.feed.rebuild()

    async def _until_lost(self) -> None:
        """Until the Lease is not ours any more, or has come anew."""
        while self.leader.is_held and not self._is_new:  # noqa: ASYNC110 - time takes it away, nobody tells
            await asyncio.sleep(STANDBY_SECONDS)

    def _taken(self) -> None:
        self._is_new = True

    # --- looking --------------------------------------------------------------------------------------------

    async def _look_for_ever(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._changed.wait()
            await asyncio.sleep(self._rest)
            self._changed.clear()
            if self._may_act:
                self._look()

    @property
    def _may_act(self) -> bool:
        return self.leader.is_held and not self._is_new and self.machine.feed.is_rebuilt

    def _pause(self) -> float:
        """Seconds until the next look, if nothing changes."""
        due = self.machine.next_at if self._may_act else None
        return FULL_LOOK_SECONDS if due is None else min(max(due - self._now(), 0.0), FULL_LOOK_SECONDS)

    def _look(self) -> None:
        began = time.perf_counter()
        actions = self.machine.look(self._now())
        took = time.perf_counter() - began
        self.figures.plan_seconds.observe(took)
        self._rest = min(took, LONGEST_REST_SECONDS) if took > LONG_LOOK_SECONDS else COALESCE_SECONDS
        self._note(actions)
        self._send(actions)

    def _note(self, actions: Iterable[QuotaAction]) -> None:
        """Since when those have waited who are admitted now."""
        known = self.machine.feed.known
        for action in actions:
            if isinstance(action, AdmitPod) and (pod := known.get(action.target.uid)) is not None:
                self._created[pod.uid] = pod.created_at

    # --- sending --------------------------------------------------------------------------------------------

    def _send(self, actions: Iterable[QuotaAction]) -> None:
        for action in actions:
            (self._words if _is_word(action) else self._deeds).append(action)
        while len(self._calls) < WIDTH and not self._is_ending:
            if self._words and len(self._telling) < (WORDS_BESIDE if self._deeds else WIDTH):
                self._telling.add(self._call(self._words.popleft()))
            elif self._deeds:
                self._call(self._deeds.popleft())
            else:
                return

    def _call(self, action: QuotaAction) -> asyncio.Task[None]:
        task = asyncio.ensure_future(self._try(action))
        self._calls.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._calls.discard(task)
        self._telling.discard(task)
        bug = task.exception()
        if bug is not None:
            self._bugs.put_nowait(bug)
        self._send(())

    async def _fail(self) -> None:
        """A bug met while a call was carried out ends the process."""
        raise await self._bugs.get()

    async def _try(self, action: QuotaAction) -> None:
        """One call, and what follows from how it ended."""
        outcome = await self._apply(action)
        if outcome.result is Result.UNKNOWN:
            self._undecided_until = max(self._undecided_until, self._monotonic() + WRITE_SECONDS)
        self._count(action, outcome)
        self._send(self.machine.done(action, outcome, self._now()))

    async def _apply(self, action: QuotaAction) -> Outcome:
        """Without the Lease no call waits for its turn: it would be an old one when the Lease comes back."""
        if not self.leader.is_held:
            return _LEASE_OVER

        def left() -> float:
            return min(self.leader.left(), WRITE_SECONDS)

        try:
            outcome = await self._api.apply(action, None if isinstance(action, RecordObjectEvent) else left)
        except Exception as error:  # noqa: BLE001 - whatever ended the call (credentials, a key), the API server may have had it
            outcome = Outcome(Result.UNKNOWN, str(error) or type(error).__name__)
        if outcome.result in (Result.REFUSED, Result.UNKNOWN):
            about = action.tree if isinstance(action, WriteTreeStatus) else action.target
            _log.info("%s of %s/%s: %s", type(action).__name__, about.namespace, about.name, outcome.reason)
        return outcome

    def _count(self, action: QuotaAction, outcome: Outcome) -> None:
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

    def _is_idle(self) -> bool:
        """Whether the Lease may go to another: no write is on its way or may still come true unseen."""
        return not self._calls and self._monotonic() >= self._undecided_until


def _is_word(action: QuotaAction) -> bool:
    """A claim is a deed: evictions wait for it."""
    return isinstance(action, RecordObjectEvent | WriteTreeStatus) or (
        isinstance(action, SetPodCondition) and action.condition.reason != Reason.WAITING_FOR_EVICTIONS
    )


class _Figures:
    """What only the controller knows: what it did, and how long that took.

    See docs/spec/quota.md#quota-board-and-metrics.
    """

    def __init__(self, is_leading: Callable[[], bool]) -> None:
        registry = self._registry = CollectorRegistry()
        self.admissions, self.evictions, self.refusals = (
            Counter(each.name.removesuffix("_total"), each.help, registry=registry) for each in (ADMISSIONS, EVICTIONS, REFUSALS)
        )
        self.plan_seconds = Histogram("fairlead_quota_plan_seconds", "How long a plan took.", buckets=_PLAN_BUCKETS, registry=registry)
        self.wait_seconds = Histogram(
            "fairlead_quota_wait_seconds", "From a pod's creation until its quota gate was gone.", buckets=_WAIT_BUCKETS, registry=registry
        )
        Gauge(LEADING.name, LEADING.help, registry=registry).set_function(lambda: float(is_leading()))

    async def page(self, request: Request) -> Response:
        return Response(generate_latest(self._registry) + process_metrics(), headers={"content-type": CONTENT_TYPE})


_PLAN_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5)
_WAIT_BUCKETS: Final = (0.05, 0.1, 0.15, 0.25, 0.5, 1, 5, 30, 60, 300, 1800, 7200, 86400)
