"""The decider of GPU sharing: takes reports and kube-scheduler's questions, returns actions.

It is pure and synchronous: time is an argument, nothing is awaited, and all state is here.
`apps/extender` drives it on a real cluster, `run/hooks` on a simulated one, and tests on a clock
that jumps. The driver carries the steps out and hands back the outcome of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fairlead.model.actions import BindPod, Outcome, SharingAction, WriteGrants
from fairlead.model.changes import Changes
from fairlead.model.pod import Pod
from fairlead.model.refusal import Refusal
from fairlead.rules.holding.account import RESERVED
from fairlead.rules.sharing.adoption import Adoption
from fairlead.rules.sharing.bindings import Bindings, ReadOutcome, ReadPod, Step
from fairlead.rules.sharing.feed import LedgerFeed
from fairlead.rules.sharing.ledger import Filtered, Ledger
from fairlead.rules.sharing.placement import DEFAULT_POLICIES, SharePolicies
from fairlead.rules.sharing.retry_hints import RetryHints

GRANT_RETRY_SECONDS: Final = 5.0
"""The time after which a grant that could not be written is written again."""
CHECK_SECONDS: Final = 1.0
"""The time between two checks of doubts and of rejected pods that wait for room."""
SharingStep = Step | SharingAction


class SharingMachine:
    """`feed` takes reports of the cluster, `bindings` the bindings that kube-scheduler asks for.

    `adoption` and `hints` return the actions that follow from changes of the cluster.
    `_has_changed` is True from a change until the next look.
    """

    def __init__(self, policies: SharePolicies = DEFAULT_POLICIES) -> None:
        self.feed = LedgerFeed(policies, self._note)
        self.bindings = Bindings(self.feed)
        self.adoption = Adoption(self.feed)
        self.hints = RetryHints(self.feed)
        self._has_changed = False
        self._grants_at = self._checks_at = float("-inf")

    @property
    def is_rebuilt(self) -> bool:
        """Whether every kind has been listed since the last `rebuild`."""
        return self.feed.is_rebuilt

    @property
    def next_at(self) -> float | None:
        """When the next look is due: -inf = now, None = after a change, or when all is listed."""
        if not self.feed.is_rebuilt:
            return None
        times = [float("-inf")] if self._has_changed else []
        times += [self._grants_at] if self.adoption.has_unwritten else []
        times += [self._checks_at] if self.bindings.doubts or self.hints.has_waiting else []
        return min(times, default=None)

    def rebuild(self) -> None:
        """Everything known may be old; every kind is listed anew."""
        self.feed.rebuild()
        self.feed.begin()

    def observe(self, changes: Changes[Any]) -> None:
        """Take what a list or a watch reported of one kind."""
        self.feed.observe(changes)

    def look(self, now: float) -> Iterator[SharingStep | None]:
        """The steps to carry out now: grants, Events, reads of doubts, and retries.

        None where the driver may do other work.
        """
        if self._has_changed or (self.adoption.has_unwritten and now >= self._grants_at):
            self._has_changed, self._grants_at = False, now + GRANT_RETRY_SECONDS
            yield from self.adoption.look()
        if now >= self._checks_at:
            self._checks_at = now + CHECK_SECONDS
            yield from self.bindings.due(now)
            yield from self.hints.due(now)

    def done(self, step: SharingStep, outcome: Outcome, now: float) -> Sequence[SharingStep]:
        """Take the outcome of a step, for a `ReadPod` a `ReadOutcome`; the steps that follow."""
        match step:
            case BindPod():
                return self.bindings.called(step, outcome, now)
            case ReadPod():
                found = (
                    outcome.found if isinstance(outcome, ReadOutcome) else Refusal(outcome.reason)
                )
                return self.bindings.read(step, found, now)
            case WriteGrants():
                self.adoption.written(step, outcome)
        return ()

    def _note(self) -> None:
        self._has_changed = True

    @property
    def ledger(self) -> Ledger:
        return self.feed.ledger

    def filter(self, pod: Pod, names: Sequence[str]) -> Filtered:
        """As `Ledger.filter`.

        A pod whose binding is under way or in doubt fits only the node of that binding.
        """
        self.bindings.remember(pod)
        tenant = self.ledger.tenants.get(pod.uid)
        if tenant is None or tenant.state != RESERVED:
            return self.ledger.filter(pod, names)
        others = {
            name: f"pod is being bound to node {tenant.node}"
            for name in names
            if name != tenant.node
        }
        return Filtered([tenant.node] if tenant.node in names else [], others, {})
