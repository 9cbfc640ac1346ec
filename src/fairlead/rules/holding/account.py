"""The one account of what each pod holds of each GPU of a node, and what is free.

Tables, boards, metrics and the ledger are views of it. Grants are booked by the UUID in the node's
inventory, because an index may move to another card when a driver is restarted. A grant that names
only an index (the reference plugin) means the card that has the index when the account is made.
What devices report never moves a grant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct, structs

from fairlead.model.devices.gpu import CardMode, GpuMode, GpuReading, Grant
from fairlead.model.devices.granted import GpuIdentity
from fairlead.model.keys import (
    ANNOTATION_GPU_ASSIGNED,
    ANNOTATION_GPU_IDENTITY,
    ANNOTATION_REFERENCE_ASSIGNED,
)
from fairlead.model.node import Node
from fairlead.model.occupancy import CardOccupancy
from fairlead.model.pod import GrantsByContainer, Pod
from fairlead.model.resources import GPU_CORE, GPU_MEMORY, MemoryUnit, counted
from fairlead.model.sharing import GpuNeed
from fairlead.rules.holding.booked import are_whole, booked_grants
from fairlead.rules.holding.cards import cards_of, node_unit
from fairlead.rules.holding.need import gpu_need
from fairlead.rules.nodes.status import ShareMode, gpu_mode, share_mode

_NO_GRANTS: GrantsByContainer = {}


class TenantState(StrEnum):
    """`UNWRITTEN`: seen on its node, its cards not yet seen in its annotation.

    `ASSIGNED`: its containers have them.
    """

    RESERVED = "reserved"
    UNWRITTEN = "unwritten"
    BOUND = "bound"
    ASSIGNED = "assigned"


class ClosedReason(StrEnum):
    """Why a card takes no new pods."""

    UNHEALTHY = "unhealthy"
    DRAINING = "draining"
    UNOFFERED = "not offered"


RESERVED: Final = TenantState.RESERVED
UNWRITTEN: Final = TenantState.UNWRITTEN
BOUND: Final = TenantState.BOUND
ASSIGNED: Final = TenantState.ASSIGNED
UNHEALTHY: Final = ClosedReason.UNHEALTHY
DRAINING: Final = ClosedReason.DRAINING
UNOFFERED: Final = ClosedReason.UNOFFERED
_SHARED: Final = CardMode.SHARED


class Hidden(Struct, frozen=True, gc=False):
    """What a pod with an unknown card may hold of any one card: at most `units`.

    A card with fewer than `least` units left cannot be its card.
    """

    least: int
    units: int
    core_percent: int


class Tenant(Struct, frozen=True, gc=False):
    """A pod that holds room on a node: reserved while it is being bound, then bound, then assigned.

    `grants`: as they were given, by container; empty for a pod on the node with an unknown card
    (PENDING). `booked`: grants that add up to what it holds.
    """

    pod: Pod
    node: str
    state: TenantState
    grants: GrantsByContainer
    booked: GrantsByContainer

    @property
    def priority(self) -> int:
        return self.pod.priority

    @property
    def is_hidden(self) -> bool:
        """It runs, so it holds a card of the node, and it is unknown which one."""
        return not self.booked and self.pod.has_started

    @property
    def is_misread(self) -> bool:
        """Its annotation differs from what it is known to hold.

        The annotation was not written yet, or it was damaged.
        """
        return bool(self.booked) and self.state != RESERVED and self.pod.grants != self.grants

    @property
    def shown_state(self) -> TenantState:
        """The state in tables and metrics, which have only reserved, bound and assigned."""
        return BOUND if self.state == UNWRITTEN else self.state

    @property
    def is_starting(self) -> bool:
        """Whether the agent may still be asked for its containers: their cards are not seen yet."""
        return self.pod.deleted_at is None and (
            self.state == RESERVED or not _is_assigned(self.pod)
        )

    @property
    def is_first_written(self) -> bool:
        """Whether an annotation that is written now is the pod's first.

        The pod waits on its node for cards that have not been written yet.
        """
        return self.state == UNWRITTEN and not self.pod.has_started


class CardAccount(Struct, gc=False):
    """One card. `key` is its UUID, or `#<index>` if the UUID is unknown.

    `trouble`: why it takes no new pods. `aside`, `core_aside`: what hidden tenants of the node may
    hold of it. `free`, `core_free` are never below zero: a card that shrank below its grants is
    overcommitted. `gpu` is the card itself.
    """

    key: str
    index: int
    uuid: str
    units: int
    memory_mib: int
    core_total: int
    trouble: ClosedReason | None = None
    used: int = 0
    core_used: int = 0
    free: int = 0
    core_free: int = 0
    aside: int = 0
    core_aside: int = 0
    gpu: CardOccupancy = CardOccupancy("", 0)

    def take(self, units: int, core_percent: int) -> None:
        """Book this much on the card; negative amounts give it back."""
        self.used += units
        self.core_used += core_percent
        self.free = max(0, self.units - self.used - self.aside) if not self.trouble else 0
        self.core_free = (
            max(0, self.core_total - self.core_used - self.core_aside) if not self.trouble else 0
        )

    @property
    def overcommitted(self) -> int:
        """Units that are granted and do not exist."""
        return max(0, self.used - self.units)


class Seat(Struct, frozen=True, gc=False):
    """What a container holds by one booked grant.

    `card` None: the grant names a card that the node does not have.
    """

    container: str
    grant: Grant
    card: CardAccount | None

    @property
    def key(self) -> str:
        return self.card.key if self.card is not None else self.grant.uuid or f"#{self.grant.index}"

    @property
    def index(self) -> int:
        """The index of the card; if the node does not have the card, the index in the grant."""
        return self.card.index if self.card is not None else self.grant.index

    @property
    def is_whole(self) -> bool:
        return self.grant.is_whole


class NodeAccount(Struct, gc=False):
    """The cards of a node by index, and its tenants by uid. `unit`: of the cards' units.

    `promised`: unbound pods that are nominated for this node, by uid. `strays`: units on cards that
    the node does not have. `hidden`: by uid, what tenants may hold of one of its cards, and it is
    unknown of which; `alike`: number of hidden tenants by what they hold. `places`: positions in
    `cards`, by a card's UUID and by its index. `is_guarded`: its agent answers the kubelet before
    it knows which container asks (docs/spec/gpu-sharing.md#guarded-mode).
    """

    name: str
    mode: ShareMode
    unit: MemoryUnit
    cards: list[CardAccount]
    places: Mapping[str | int, int]
    tenants: dict[str, Tenant] = {}
    promised: dict[str, Pod] = {}
    strays: dict[str, int] = {}
    hidden: dict[str, Hidden] = {}
    alike: dict[Hidden, int] = {}
    is_guarded: bool = False

    def seat(self, tenant: Tenant) -> None:
        """Add the tenant, and book its grants.

        Its key is its pod's uid; for a pod without a uid, as in hand-written clusters, namespace
        and name.
        """
        self._book(tenant)
        if self.hidden:
            self._set_aside()

    def seat_all(self, tenants: Iterable[Tenant]) -> None:
        """`seat` each tenant."""
        for tenant in tenants:
            self._book(tenant)
        if self.hidden:
            self._set_aside()

    def _book(self, tenant: Tenant) -> None:
        uid = tenant.pod.uid or tenant.pod.key
        self.tenants[uid] = tenant
        if tenant.booked:
            self._move(tenant, 1)
        elif tenant.is_hidden and counted(tenant.pod.limits, GPU_MEMORY):
            self._hide(uid, _hidden(tenant.pod))

    def unseat(self, uid: str) -> None:
        """Remove the tenant and give back what it holds; nothing happens for an unknown uid."""
        self.unseat_all((uid,))

    def unseat_all(self, uids: Iterable[str]) -> None:
        """`unseat` each tenant; what hidden tenants may hold is computed once, at the end."""
        hidden, alike, had_hidden = self.hidden, self.alike, bool(self.hidden)
        for uid in uids:
            tenant = self.tenants.pop(uid, None)
            if tenant is not None and tenant.booked:
                self._move(tenant, -1)
            elif uid in hidden:
                alike[hidden.pop(uid)] -= 1
        if had_hidden:
            self.alike = {each: count for each, count in alike.items() if count}
            self._set_aside()

    def without(self, uids: Collection[str]) -> NodeAccount:
        """A copy without these tenants."""
        other = structs.replace(
            self,
            cards=[structs.replace(card) for card in self.cards],
            tenants=dict(self.tenants),
            strays=dict(self.strays),
            hidden=dict(self.hidden),
            alike=dict(self.alike),
        )
        other.unseat_all(uids)
        return other

    def seats(self, tenant: Tenant) -> Sequence[Seat]:
        """What the tenant holds, grant by grant."""
        if not tenant.booked:
            return ()
        return [
            Seat(container, grant, self.card_of(grant))
            for container, given in tenant.booked.items()
            for grant in given
        ]

    def seats_of(self, pod: Pod) -> Sequence[Seat]:
        """What the pod holds here; nothing if it is no tenant, or its card is unknown."""
        tenant = self.tenants.get(pod.uid or pod.key)
        return self.seats(tenant) if tenant is not None else ()

    def card_of(self, grant: Grant) -> CardAccount | None:
        """The card that the grant names.

        A grant with a UUID never means another card with its index.
        """
        place = self.places.get(grant.uuid) if grant.uuid else None
        if place is not None:
            return self.cards[place]
        place = self.places.get(grant.index)
        if place is None or (grant.uuid and not self.cards[place].key.startswith("#")):
            return None
        return self.cards[place]

    def has_room(self, need: GpuNeed) -> bool:
        """Whether enough cards are free for a pod that asks the same of each.

        True is final; after False ask `verdict`, which checks everything.
        """
        units, core, missing = need.units, need.core_percent, need.cards
        if not units or need.is_split or not self.mode.is_shared or self.is_guarded:
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

    def _hide(self, uid: str, hidden: Hidden | None) -> None:
        before = self.hidden.pop(uid, None)
        if before is not None:
            self.alike[before] -= 1
            if not self.alike[before]:
                del self.alike[before]
        if hidden is not None:
            self.hidden[uid] = hidden
            self.alike[hidden] = self.alike.get(hidden, 0) + 1

    def _set_aside(self) -> None:
        """Count each hidden tenant on every card that may be its own: it is on one of them.

        It can only hold what no other tenant holds.
        """
        for card in self.cards:
            here = [
                (each, count)
                for each, count in self.alike.items()
                if each.least <= card.units - card.used
            ]
            card.aside = sum(each.units * count for each, count in here)
            card.core_aside = sum(each.core_percent * count for each, count in here)
            card.take(0, 0)

    def _move(self, tenant: Tenant, sign: int) -> None:
        if are_whole(tenant.booked):
            return
        for seat in self.seats(tenant):
            units = sign * seat.grant.units
            if seat.card is not None:
                seat.card.take(units, sign * seat.grant.core_percent)
            elif units:
                self.strays[seat.key] = self.strays.get(seat.key, 0) + units
                if not self.strays[seat.key]:
                    del self.strays[seat.key]


def account(
    node: Node,
    pods: Iterable[Pod] = (),
    readings: Sequence[GpuReading] = (),
    withheld: Collection[int] = (),
    mode: GpuMode | None = None,
) -> NodeAccount:
    """The node's cards, and what these pods hold of them.

    `readings`: of its devices. `withheld`: indexes that an operator took out of use (ConfigMap
    `unhealthy-gpu-<node>`). `mode`: its GPU mode, if it is known already.
    """
    unit = node_unit(node, len(readings))
    core_total = 100 if counted(node.capacity, GPU_CORE) else 0
    cards = [
        _card_account(card, core_total)
        for card in cards_of(node, mode or gpu_mode(node), unit, readings, withheld)
    ]
    is_guarded = node.annotations.get(ANNOTATION_GPU_IDENTITY) == GpuIdentity.GUARDED
    found = NodeAccount(
        node.name, share_mode(node.labels), unit, cards, _places(cards), is_guarded=is_guarded
    )
    found.seat_all(tenant_of(pod) for pod in pods)
    return found


def tenant_of(pod: Pod) -> Tenant:
    """What a bound pod holds according to its own annotation."""
    booked = booked_grants(pod)
    return Tenant(
        pod,
        pod.node,
        ASSIGNED if _is_assigned(pod) else BOUND,
        pod.grants if booked else _NO_GRANTS,
        booked,
    )


def _is_assigned(pod: Pod) -> bool:
    return "true" in (
        pod.annotations.get(ANNOTATION_GPU_ASSIGNED),
        pod.annotations.get(ANNOTATION_REFERENCE_ASSIGNED),
    )


def _card_account(card: CardOccupancy, core_total: int) -> CardAccount:
    uuid, trouble = card.uuid if card.is_named else "", _trouble(card)
    return CardAccount(
        key=uuid or f"#{card.index}",
        index=card.index,
        uuid=uuid,
        units=card.units,
        memory_mib=int(card.memory_total_mib or 0),
        core_total=core_total if card.is_offered else 0,
        trouble=trouble,
        free=0 if trouble else card.units,
        core_free=0 if trouble else core_total,
        gpu=card,
    )


def _places(cards: Sequence[CardAccount]) -> dict[str | int, int]:
    """The first card of each UUID and of each index.

    Two cards with one key are in trouble: it is unknown which of them a grant names.
    """
    if len({card.key for card in cards}) < len(cards):
        _close_twins(cards)
    from_last = [*enumerate(cards)][::-1]
    places: dict[str | int, int] = {card.index: place for place, card in from_last}
    places.update([(card.uuid, place) for place, card in from_last if card.uuid])
    return places


def _close_twins(cards: Sequence[CardAccount]) -> None:
    by_key: dict[str, CardAccount] = {}
    for place, card in enumerate(cards):
        twin = by_key.get(card.key)
        if twin is not None:
            twin.trouble = card.trouble = UNHEALTHY
            twin.take(0, 0)
            card.take(0, 0)
            card.key, card.uuid = f"{card.key}#{place}", ""
        by_key[card.key] = card


def _hidden(pod: Pod) -> Hidden:
    need = gpu_need(pod)
    if need.fault:  # another scheduler may have found cards for it
        return Hidden(1, counted(pod.limits, GPU_MEMORY), counted(pod.limits, GPU_CORE))
    return Hidden(
        min(part.units for part in need.running) if need.is_split else need.units,
        need.units,
        need.core_percent,
    )


def _trouble(card: CardOccupancy) -> ClosedReason | None:
    if card.is_healthy is False or card.is_withheld:
        return UNHEALTHY
    if card.is_draining or card.mode != _SHARED:
        return DRAINING
    return None if card.is_offered else UNOFFERED
