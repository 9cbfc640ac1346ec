"""What is free on each shared card of a node? One node's account in the ledger: cards, tenants, and room that is promised.

What a newcomer gets wrong: tenants are booked by UUID. An index may move to another card when a driver is restarted; where only an
index is known (the reference plugin) it is looked up once, when the node's cards are.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final

from msgspec import Struct

from fairlead.model.gpu import Grant
from fairlead.model.node import Node
from fairlead.model.occupancy import CardOccupancy
from fairlead.model.pod import GrantsByContainer, Pod
from fairlead.model.resources import GPU_CORE, GPU_MEMORY, counted
from fairlead.model.sharing import GpuNeed
from fairlead.rules.holding.cards import cards_of
from fairlead.rules.holding.need import gpu_need
from fairlead.rules.holding.units import GIB, MIB_PER_UNIT, unit_of
from fairlead.rules.node_status import gpu_mode
from fairlead.rules.share_mode import ShareMode, share_mode

RESERVED: Final = "reserved"
BOUND: Final = "bound"
ASSIGNED: Final = "assigned"
UNHEALTHY: Final = "unhealthy"
DRAINING: Final = "draining"
SHARED: Final = "shared"


class Seat(Struct, frozen=True, gc=False):
    """Part of a card that is held."""

    card: str
    units: int
    core_percent: int


class Hidden(Struct, frozen=True, gc=False):
    """What a pod may hold of a card, if it is there: at most `units`. It is not where fewer than `least` are left."""

    least: int
    units: int
    core_percent: int


class Tenant(Struct, frozen=True, gc=False):
    """A pod that holds room on a node: `reserved` while it is being bound, then `bound`, then `assigned` (its containers have it).

    `grants` as they were given, by container; empty for a pod that sits there and whose card nobody knows (PENDING).
    """

    pod: Pod
    node: str
    state: str
    grants: GrantsByContainer
    booked: GrantsByContainer

    @property
    def priority(self) -> int:
        return self.pod.priority

    @property
    def is_hidden(self) -> bool:
        """It runs, so it holds a card of the node, and nobody can say which."""
        return not self.booked and self.pod.has_started

    @property
    def is_misread(self) -> bool:
        """Its annotation says something else than what it is known to hold: somebody damaged it while it was bound."""
        return bool(self.booked) and self.state != RESERVED and self.pod.grants != self.grants


@dataclass(slots=True)
class CardAccount:
    """One card. `key` is its UUID, or `#<index>` where nobody told one. `trouble`: why it takes no new pods, "" = it does.

    `aside`, `core_aside`: what hidden tenants of the node may hold of it. `free`, `core_free` are never below zero: a card that shrank
    below its grants is overcommitted.
    """

    key: str
    index: int
    uuid: str
    units: int
    memory_mib: int
    core_total: int
    trouble: str = ""
    used: int = 0
    core_used: int = 0
    free: int = 0
    core_free: int = 0
    aside: int = 0
    core_aside: int = 0

    def take(self, units: int, core_percent: int) -> None:
        """Negative amounts give back."""
        self.used += units
        self.core_used += core_percent
        self.free = max(0, self.units - self.used - self.aside) if not self.trouble else 0
        self.core_free = max(0, self.core_total - self.core_used - self.core_aside) if not self.trouble else 0

    @property
    def overcommitted(self) -> int:
        """Units that are granted and not there."""
        return max(0, self.used - self.units)


@dataclass(slots=True)
class NodeAccount:
    """`promised`: unbound pods that are nominated for this node, by uid. `strays`: units on cards that the node does not have.

    `hidden`: what tenants may hold of one of its cards, nobody knows which, by uid.
    """

    name: str
    mode: ShareMode
    unit: str
    cards: list[CardAccount]
    tenants: dict[str, Tenant] = field(default_factory=dict)
    promised: dict[str, Pod] = field(default_factory=dict)
    strays: dict[str, int] = field(default_factory=dict)
    hidden: dict[str, Hidden] = field(default_factory=dict)

    def seat(self, tenant: Tenant) -> None:
        self.tenants[tenant.pod.uid] = tenant
        self._move(tenant, 1)
        if tenant.is_hidden and (hidden := _hidden(tenant.pod)).units:
            self.hidden[tenant.pod.uid] = hidden
        if self.hidden:
            self._set_aside()

    def unseat(self, uid: str) -> None:
        tenant = self.tenants.pop(uid, None)
        if tenant is None:
            return
        self._move(tenant, -1)
        if self.hidden:
            self.hidden.pop(uid, None)
            self._set_aside()

    def without(self, uids: Collection[str]) -> NodeAccount:
        """A copy in which these tenants are gone."""
        other = replace(
            self,
            cards=[replace(card) for card in self.cards],
            tenants=dict(self.tenants),
            strays=dict(self.strays),
            hidden=dict(self.hidden),
        )
        for uid in uids:
            other.unseat(uid)
        return other

    def seats(self, tenant: Tenant) -> list[Seat]:
        """What the tenant holds, card by card; on a card that is not here, too."""
        found = ((self.card_of(grant), grant) for given in tenant.booked.values() for grant in given if grant.units or grant.core_percent)
        return [Seat(card.key if card else _stray_key(grant), grant.units, grant.core_percent) for card, grant in found]

    def card_of(self, grant: Grant) -> CardAccount | None:
        """The card that the grant means; a grant that names a UUID means no other card that has its index."""
        for card in self.cards:
            has_name = grant.uuid and not card.key.startswith("#")
            if card.uuid == grant.uuid if has_name else card.index == grant.index:
                return card
        return None

    def has_room(self, need: GpuNeed) -> bool:
        """Whether enough cards are free for a pod that asks the same of each; a quick yes, and no is to be asked again in full."""
        units, core, missing = need.units, need.core_percent, need.cards
        if not units or need.is_split or not self.mode.is_shared:
            return False
        for card in self.cards:
            if card.free >= units and card.core_free >= core:  # a card in trouble has none free
                missing -= 1
                if not missing:
                    return True
        return False

    def usable(self) -> list[CardAccount]:
        return [card for card in self.cards if not card.trouble]

    @property
    def largest_free(self) -> int:
        """Units free on the card that has most; -1 if no card takes pods."""
        if not self.mode.is_shared:
            return -1
        return max((card.free for card in self.cards if not card.trouble), default=-1)

    @property
    def overcommitted(self) -> int:
        return sum(card.overcommitted for card in self.cards) + sum(self.strays.values())

    def _set_aside(self) -> None:
        """Each hidden tenant counts on every card that has room for it: one of them it is. Only what nobody else holds can be its."""
        for card in self.cards:
            here = [each for each in self.hidden.values() if each.least <= card.units - card.used]
            card.aside, card.core_aside = sum(each.units for each in here), sum(each.core_percent for each in here)
            card.take(0, 0)

    def _move(self, tenant: Tenant, sign: int) -> None:
        cards = {card.key: card for card in self.cards}
        for seat in self.seats(tenant):
            if seat.card in cards:
                cards[seat.card].take(sign * seat.units, sign * seat.core_percent)
            else:
                self.strays[seat.card] = self.strays.get(seat.card, 0) + sign * seat.units
                if not self.strays[seat.card]:
                    del self.strays[seat.card]


def account_of(node: Node, withheld: Collection[int] = ()) -> NodeAccount:
    """The empty account of a node. `withheld`: indexes that an operator took out (ConfigMap `unhealthy-gpu-<node>`)."""
    mode = share_mode(node.labels)
    cards = cards_of(node, gpu_mode(node), ())
    unit = unit_of(node, max((card.units for card in cards), default=0))
    core_total = 100 if counted(node.capacity, GPU_CORE) else 0
    accounts: dict[str, CardAccount] = {}
    for card in cards:
        account = CardAccount(
            key=card.uuid or f"#{card.index}",
            index=card.index,
            uuid=card.uuid,
            units=max(0, card.units),
            memory_mib=int(card.memory_total_mib or max(0, card.units) * MIB_PER_UNIT.get(unit, MIB_PER_UNIT[GIB])),
            core_total=core_total,
            trouble=_trouble(card, card.index in withheld),
        )
        twin = accounts.get(account.key)
        if twin is not None:  # two cards that claim one UUID (or one index): nobody could tell whose memory a grant is
            twin.trouble = account.trouble = UNHEALTHY
            account.key, account.uuid = f"{account.key}#{len(accounts)}", ""
        accounts[account.key] = account
    for account in accounts.values():
        account.take(0, 0)
    return NodeAccount(node.name, mode, unit, sorted(accounts.values(), key=lambda card: card.index))


def _hidden(pod: Pod) -> Hidden:
    need = gpu_need(pod)
    if need.fault:  # whoever runs it found cards for it somehow
        return Hidden(1, counted(pod.limits, GPU_MEMORY), counted(pod.limits, GPU_CORE))
    return Hidden(min(part.units for part in need.running) if need.is_split else need.units, need.units, need.core_percent)


def _trouble(card: CardOccupancy, is_withheld: bool) -> str:
    if card.is_healthy is False or is_withheld:
        return UNHEALTHY
    return DRAINING if card.is_draining or card.mode != SHARED else ""


def _stray_key(grant: Grant) -> str:
    return grant.uuid or f"#{grant.index}"
