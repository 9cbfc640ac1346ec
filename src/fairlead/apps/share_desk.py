"""What does the extender answer to each verb of kube-scheduler, and what runs beside it? Everything of it but HTTP.

What a newcomer gets wrong: kube-scheduler holds nothing against an extender that says `Error`; it tries again. So whatever is not
certain (no lease, a ledger that is being built) is an error, and never a guess.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final

from fairlead.apps.share_adoption import RETRY_SECONDS, ShareAdoption
from fairlead.apps.share_binder import ShareBinder
from fairlead.apps.share_feed import ShareFeed
from fairlead.apps.share_lease import ShareLease
from fairlead.apps.share_nudge import ShareNudge
from fairlead.ports import Clock, SharingApi
from fairlead.rules.holding.account import RESERVED
from fairlead.rules.placement import DEFAULT_POLICIES, SharePolicies
from fairlead.rules.share_ledger import Filtered, Ledger
from fairlead.rules.share_preempt import Victims, plan_preemption
from fairlead.wire.scheduler_extender import BindAsked, FilterAsked, PreemptAsked

REBUILDING: Final = "GPU ledger is being rebuilt"
PATIENCE_SECONDS: Final = 4.0
"""How long a call waits for lease and ledger; kube-scheduler's own patience is 10 s."""


class ShareDesk:
    """`lease_name` is for messages. `trouble` is "" when calls are answered."""

    def __init__(
        self,
        api: SharingApi,
        clock: Clock,
        identity: str,
        *,
        lease_name: str,
        policies: SharePolicies = DEFAULT_POLICIES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.feed = ShareFeed(api, policies)
        self.lease = ShareLease(api, identity, self.feed.rebuild, monotonic)
        self.binder = ShareBinder(api, self.feed, clock, lambda: self.trouble, monotonic)
        self.adoption = ShareAdoption(api, self.feed, clock)
        self.nudge = ShareNudge(api, self.feed, clock, monotonic)
        self._lease_name = lease_name

    @property
    def ledger(self) -> Ledger:
        return self.feed.ledger

    @property
    def trouble(self) -> str:
        if not self.lease.is_held:
            why = f": {self.lease.trouble}" if self.lease.trouble else ""
            return f"this extender does not hold the lease {self._lease_name}{why}"
        return "" if self.feed.is_rebuilt else REBUILDING

    async def run(self) -> None:
        """Until cancelled; then what is on its way is finished and the lease is given back."""
        try:
            async with asyncio.TaskGroup() as group:
                await self.lease.turn()
                for loop in (self.lease.run(), self.feed.run(), self.adoption.say(), self._look_for_ever(), self._look_after_for_ever()):
                    group.create_task(loop)
        finally:
            await self.binder.finish()
            await self.lease.release()

    async def filter(self, asked: FilterAsked) -> Filtered | str:
        if why := await self._admit():
            return why
        pod = asked.pod
        self.binder.remember(pod)
        tenant = self.ledger.tenants.get(pod.uid)
        if tenant is not None and tenant.state == RESERVED:  # being bound, or nobody knows: only there may it be tried again
            others = {name: f"pod is being bound to node {tenant.node}" for name in asked.names if name != tenant.node}
            return Filtered([tenant.node] if tenant.node in asked.names else [], others, {})
        answer = self.ledger.filter(pod, asked.names)
        if answer.passed:
            self.nudge.passed(pod)
        else:
            self.nudge.refused(pod, asked.names)
        return answer

    async def prioritize(self, asked: FilterAsked) -> list[tuple[str, int]]:
        if await self._admit():
            return [(name, 0) for name in asked.names]
        return self.ledger.prioritize(asked.pod, asked.names)

    async def bind(self, asked: BindAsked) -> str:
        return await self._admit() or await self.binder.bind(asked)

    async def preempt(self, asked: PreemptAsked) -> dict[str, tuple[tuple[str, ...], int]]:
        """Without the lease no node: nobody is evicted on a guess."""
        if await self._admit():
            return {}
        proposed = {node: Victims(uids, violations) for node, (uids, violations) in asked.victims.items()}
        planned = plan_preemption(self.ledger, asked.pod, proposed)
        return {node: (victims.uids, victims.violations) for node, victims in planned.items()}

    async def _admit(self) -> str:
        """ "" when this process may answer; waits a moment for what is on its way."""
        self.lease.called()
        if self.trouble:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while self.trouble:  # noqa: ASYNC110 - two conditions that two loops bring about
                        await asyncio.sleep(0.02)
        return self.trouble

    async def _look_for_ever(self) -> None:
        while True:
            self.feed.changed.clear()
            if not self.trouble:
                await self.adoption.look()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.feed.changed.wait(), RETRY_SECONDS if self.adoption.has_unwritten or self.trouble else None)
            await asyncio.sleep(0.1)

    async def _look_after_for_ever(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            await self.binder.settle_due()
            if not self.trouble:
                await self.nudge.look()
