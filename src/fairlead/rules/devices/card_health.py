"""Health of a node's cards from XIDs, probes, lost cards and an operator's override.

Specification: docs/spec/gpu-sharing.md#gpu-health.

The agent and the exporter use one rule for which XIDs count against a card: faults of programs
never do; any other XID counts for ten minutes after its last report, a sticky one until the card is
reset.

A card recovers after ten minutes without a fatal XID. The time is counted from one good probe to
the next, at most one probe interval at once: so a clock that jumps ahead heals no card early, a
clock that jumps back costs one step, and a failed probe starts the ten minutes anew. After a sticky
XID a card recovers only by a reset, or when the driver reports that no action is needed. The state
is kept for the next process: without it a restart would heal every card, and a card that was reset
meanwhile would stay unhealthy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from msgspec import structs

from fairlead.model.devices.device import XidEvent
from fairlead.model.devices.driver import CardAnswer, CardFault, is_reset
from fairlead.model.devices.gpu import GpuSlot, Health
from fairlead.model.devices.xid import APPLICATION
from fairlead.rules.holding.cards import WITHHELD

PROBE_SECONDS: Final = 30.0
RECOVERY_SECONDS: Final = 600.0
STICKY: Final = frozenset({48, 64, 79, 95, 119, 120})
_NONE: Final = frozenset[int]()
_HEALTHY: Final = Health.HEALTHY
_UNHEALTHY: Final = Health.UNHEALTHY


def is_of_card(xid: int, ignored: Collection[int] = _NONE) -> bool:
    """Whether the XID is a fault of the card.

    `ignored`: XIDs that are not, beside those of programs.

    >>> is_of_card(79), is_of_card(31), is_of_card(94, ignored=[94])
    (True, False, False)
    """
    return xid not in APPLICATION and xid not in ignored


def is_over(quiet_seconds: float, *, is_sticky: bool) -> bool:
    """Whether a card is healthy again after this time without a fault.

    >>> is_over(600.0, is_sticky=False)
    True
    >>> is_over(599.0, is_sticky=False)
    False
    >>> is_over(1e9, is_sticky=True)
    False
    """
    return quiet_seconds >= RECOVERY_SECONDS and not is_sticky


def standing_xids(
    events: Iterable[XidEvent],
    now: float,
    reset_at: float | None = None,
    recovery_action: float | None = None,
) -> frozenset[int]:
    """The codes that count against a card.

    Times are epoch seconds; an event later than `now` counts.

    `reset_at`: the last known reset of the card, None = none. `recovery_action`: what the driver
    asks for, 0 = nothing, None = the driver does not report it. With 0 a sticky XID expires like
    the others: the card was reset while no process observed it.

    >>> reported = [XidEvent(31, 1, 100.0), XidEvent(63, 1, 100.0), XidEvent(79, 1, 100.0)]
    >>> sorted(standing_xids(reported, 100.0)), sorted(standing_xids(reported, 700.0))
    ([63, 79], [79])
    >>> sorted(standing_xids(reported, 130.0, reset_at=120.0))
    []
    >>> sorted(standing_xids(reported, 700.0, recovery_action=0))
    []
    """
    sticky = _NONE if recovery_action == 0 else STICKY
    return frozenset(
        event.xid
        for event in events
        if event.count
        and is_of_card(event.xid)
        and (reset_at is None or event.last_at > reset_at)
        and not is_over(now - event.last_at, is_sticky=event.xid in sticky)
    )


class CardHealths:
    """The faults of the cards of one node.

    Put events in; `judged` returns the cards with their health.

    `kept`: faults of the process before. `ignored`: XIDs that are no fault of the card, beside
    those of applications. `sticky`: those that need a reset.
    """

    def __init__(
        self,
        kept: Iterable[CardFault] = (),
        ignored: Collection[int] = (),
        sticky: Collection[int] = STICKY,
    ) -> None:
        self._faults = {fault.uuid: fault for fault in kept}
        self._ignored = frozenset(ignored)
        self._sticky = frozenset(sticky)

    def shown(self, uuids: Collection[str]) -> None:
        """Take the list of cards that the driver shows now.

        A card that it showed before is lost until it is back.
        """
        for uuid in uuids:
            fault = self._faults.setdefault(uuid, CardFault(uuid))
            if fault.is_lost:
                self._faults[uuid] = structs.replace(fault, is_lost=False, quiet_seconds=0.0)
        for uuid in self._faults.keys() - set(uuids):
            self._faults[uuid] = structs.replace(self._faults[uuid], is_lost=True)

    def xid(self, xid: int, uuid: str | None, now: float) -> None:
        """The driver reported this XID. `uuid` None: without a card, so it counts for all cards."""
        if not is_of_card(xid, self._ignored):
            return
        is_sticky = xid in self._sticky
        for each in [uuid] if uuid is not None else list(self._faults):
            fault = self._faults.get(each, CardFault(each))
            text = fault.xid if fault.is_sticky and not is_sticky else xid
            self._faults[each] = structs.replace(
                fault, xid=text, is_sticky=fault.is_sticky or is_sticky, quiet_seconds=0.0, at=now
            )

    def probed(self, uuid: str, answer: CardAnswer, now: float) -> None:
        """The result of a probe. A card that was reset since its XID is healthy at once."""
        known = self._faults.get(uuid, CardFault(uuid))
        if answer.fault:
            text, is_away = f"probe failed: {answer.fault}", known.is_away or answer.is_down
            self._faults[uuid] = structs.replace(
                known, probe=text, quiet_seconds=0.0, at=now, is_away=is_away
            )
            return
        energy = known.energy_mj if answer.energy_mj is None else answer.energy_mj
        quiet = known.quiet_seconds + min(max(0.0, now - known.at), PROBE_SECONDS)
        is_sticky = known.is_sticky and answer.recovery_action != 0
        was_reset = is_reset(known.energy_mj, answer.energy_mj, was_away=known.is_away)
        if is_over(quiet, is_sticky=is_sticky) or (known.xid is not None and was_reset):
            known, quiet = CardFault(uuid, is_lost=known.is_lost), 0.0
        self._faults[uuid] = structs.replace(
            known, probe="", quiet_seconds=quiet, at=now, energy_mj=energy, is_away=False
        )

    def was_reset(self, uuid: str | None) -> None:
        """The card was reset; None = all of them, the machine was booted."""
        for each in [uuid] if uuid is not None else list(self._faults):
            self._faults[each] = CardFault(
                each, is_lost=self._faults.get(each, CardFault(each)).is_lost
            )

    def kept(self) -> tuple[CardFault, ...]:
        """Faults for the next process."""
        return tuple(sorted(self._faults.values(), key=lambda fault: fault.uuid))

    def judged(
        self, cards: Iterable[GpuSlot], withheld: Collection[int] = ()
    ) -> tuple[GpuSlot, ...]:
        """The cards with health and reason. `withheld`: indexes that an operator took out of use.

        >>> healths = CardHealths()
        >>> healths.xid(79, "GPU-a", now=5.0)
        >>> [card.reason for card in healths.judged([GpuSlot(0, "GPU-a"), GpuSlot(1, "GPU-b")])]
        ['XID 79', '']
        """
        return tuple(self._judged(card, card.index in withheld) for card in cards)

    def _judged(self, card: GpuSlot, is_withheld: bool) -> GpuSlot:
        fault = self._faults.get(card.uuid)
        reason = (fault.reason if fault else "") or (WITHHELD if is_withheld else "")
        return structs.replace(card, health=_UNHEALTHY if reason else _HEALTHY, reason=reason)
