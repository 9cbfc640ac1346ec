"""Health of a node's cards from XIDs, probes, lost cards and an operator's override
(docs/spec/gpu-sharing.md#gpu-health).

Which XIDs stand against a card is one rule, of the agent and of the exporter: faults of programs never do,
any other does for ten minutes after it was told last, a sticky one until the card is reset.

A card recovers after ten minutes without a fatal XID, counted from one good probe to the next and never more
than the time between two probes at once. So a clock that jumps ahead heals nothing early, one that jumps back
costs one step, and a probe that fails begins the ten minutes anew. What a sticky XID took out comes back only
by a reset, or when the driver says that nothing has to be done. The state can be kept and taken over by the
next process, or a restart would heal every card, and one that was reset meanwhile would stay ill.
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
    """Whether it is a fault of the card. `ignored`: XIDs that are none, beside those of programs.

    >>> is_of_card(79), is_of_card(31), is_of_card(94, ignored=[94])
    (True, False, False)
    """
    return xid not in APPLICATION and xid not in ignored


def is_over(quiet_seconds: float, *, is_sticky: bool) -> bool:
    """Whether a card is well again so long after its last fault.

    >>> is_over(600.0, is_sticky=False), is_over(599.0, is_sticky=False), is_over(1e9, is_sticky=True)
    (True, False, False)
    """
    return quiet_seconds >= RECOVERY_SECONDS and not is_sticky


def standing_xids(
    events: Iterable[XidEvent], now: float, reset_at: float | None = None, recovery_action: float | None = None
) -> frozenset[int]:
    """The codes that stand against a card. Times are epoch seconds; `now` before an event's: it stands.

    `reset_at`: when the card was reset last, None = nobody saw that. `recovery_action`: what the driver asks
    for, 0 = nothing, None = it does not say. Where it asks for nothing a sticky XID is over like the others:
    the card was reset while nobody looked.

    >>> told = [XidEvent(31, 1, 100.0), XidEvent(63, 1, 100.0), XidEvent(79, 1, 100.0)]
    >>> sorted(standing_xids(told, 100.0)), sorted(standing_xids(told, 700.0))
    ([63, 79], [79])
    >>> sorted(standing_xids(told, 130.0, reset_at=120.0))
    []
    >>> sorted(standing_xids(told, 700.0, recovery_action=0))
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
    """The faults of the cards of one node. Events are put in; `judged` tells what follows.

    `kept`: faults of the process before. `ignored`: XIDs that are no fault of the card, beside those of
    applications. `sticky`: those that need a reset.
    """

    def __init__(self, kept: Iterable[CardFault] = (), ignored: Collection[int] = (), sticky: Collection[int] = STICKY) -> None:
        self._faults = {fault.uuid: fault for fault in kept}
        self._ignored = frozenset(ignored)
        self._sticky = frozenset(sticky)

    def shown(self, uuids: Collection[str]) -> None:
        """The driver shows exactly these cards now. One that it showed before is lost, until it is back."""
        for uuid in uuids:
            fault = self._faults.setdefault(uuid, CardFault(uuid))
            if fault.is_lost:
                self._faults[uuid] = structs.replace(fault, is_lost=False, quiet_seconds=0.0)
        for uuid in self._faults.keys() - set(uuids):
            self._faults[uuid] = structs.replace(self._faults[uuid], is_lost=True)

    def xid(self, xid: int, uuid: str | None, now: float) -> None:
        """The driver reported this XID. `uuid` None: it did not say of which card, so it is of all."""
        if not is_of_card(xid, self._ignored):
            return
        is_sticky = xid in self._sticky
        for each in [uuid] if uuid is not None else list(self._faults):
            fault = self._faults.get(each, CardFault(each))
            told = fault.xid if fault.is_sticky and not is_sticky else xid
            self._faults[each] = structs.replace(fault, xid=told, is_sticky=fault.is_sticky or is_sticky, quiet_seconds=0.0, at=now)

    def probed(self, uuid: str, answer: CardAnswer, now: float) -> None:
        """The card was asked how it is. One that was reset since its XID is well at once."""
        known = self._faults.get(uuid, CardFault(uuid))
        if answer.fault:
            told, is_away = f"probe failed: {answer.fault}", known.is_away or answer.is_down
            self._faults[uuid] = structs.replace(known, probe=told, quiet_seconds=0.0, at=now, is_away=is_away)
            return
        energy = known.energy_mj if answer.energy_mj is None else answer.energy_mj
        quiet = known.quiet_seconds + min(max(0.0, now - known.at), PROBE_SECONDS)
        is_sticky = known.is_sticky and answer.recovery_action != 0
        was_reset = is_reset(known.energy_mj, answer.energy_mj, was_away=known.is_away)
        if is_over(quiet, is_sticky=is_sticky) or (known.xid is not None and was_reset):
            known, quiet = CardFault(uuid, is_lost=known.is_lost), 0.0
        self._faults[uuid] = structs.replace(known, probe="", quiet_seconds=quiet, at=now, energy_mj=energy, is_away=False)

    def was_reset(self, uuid: str | None) -> None:
        """The card was reset; None = all of them, the machine was booted."""
        for each in [uuid] if uuid is not None else list(self._faults):
            self._faults[each] = CardFault(each, is_lost=self._faults.get(each, CardFault(each)).is_lost)

    def kept(self) -> tuple[CardFault, ...]:
        """What the next process is to know."""
        return tuple(sorted(self._faults.values(), key=lambda fault: fault.uuid))

    def judged(self, cards: Iterable[GpuSlot], withheld: Collection[int] = ()) -> tuple[GpuSlot, ...]:
        """The cards with health and reason. `withheld`: indexes that an operator took out.

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
