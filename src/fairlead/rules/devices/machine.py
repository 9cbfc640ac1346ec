"""What a node's agent decides: lists of resources, grants of containers, labels, marks, Events.

The agent stands between three sources that know different things. The API server has the node and
its pods, with the grants that the scheduler extender wrote. The kubelet has the containers that
hold devices, but learns of them only after it has given the devices out. The GPU driver has the
cards and their health. Each source is late at times, and each may be away for a while.

So facts are put in as they arrive (`observe`, `driver_…`, `kubelet_reports`), and a fact stands
until its source reports another one: an API server that does not answer takes no pod away. `look`
returns everything that follows for the node. `start` and `answer_now` return what one container
gets. Nothing is decided before node, pods, cards and holders are known once (`missing`): a list
that is too short would have the kubelet take devices away from containers that run.

Nothing is carried out here. The driver (`apps/node_agent`) writes files, serves the kubelet and
calls the API server. What was given to containers is kept here (`given`) and in files, so that an
agent that starts again gives every container the same cards: see `remember` and `regain`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from fairlead.model.actions import ObjectRef, PatchObject, RecordObjectEvent
from fairlead.model.changes import KIND_NODES, KIND_PODS, Changes
from fairlead.model.devices.driver import CardAnswer, CardFault, IsolationMeans, MpsLimit
from fairlead.model.devices.gpu import CardMode, GpuSlot, Health
from fairlead.model.devices.granted import ContainerGrant, DeviceRefusal
from fairlead.model.devices.kubelet import (
    CardLimit,
    ContainerEdits,
    ContainerLimits,
    GivenShare,
    HeldDevices,
    Region,
)
from fairlead.model.keys import (
    ANNOTATION_GPU_ASSIGN_TIME,
    ANNOTATION_GPU_ASSIGNED,
    ANNOTATION_REFERENCE_ASSIGN_TIME,
    ANNOTATION_REFERENCE_ASSIGNED,
)
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.resources import GPU_CORE, GPU_MEMORY, NVIDIA_GPU, MemoryUnit
from fairlead.model.sharing import Withheld
from fairlead.model.snapshot import GPU_WITHHELD
from fairlead.rules.devices.card_health import STICKY, CardHealths
from fairlead.rules.devices.card_mode import (
    CardHolders,
    CardPlan,
    card_holders,
    card_modes,
    card_plan,
    is_foreign_plugin,
)
from fairlead.rules.devices.container_edits import (
    NodeFiles,
    container_limits,
    fresh_region,
    given_shares,
    shared_edits,
    whole_edits,
)
from fairlead.rules.devices.grant import (
    as_remembered,
    foreign_ids,
    granted,
    guarded_grant,
    otherwise_answered,
    whole_cards,
)
from fairlead.rules.devices.ids import token, unlistable, uuid_of
from fairlead.rules.devices.owner import IdsOwner, KnownPods, find_owner, kubelet_uid
from fairlead.rules.devices.provider import Provider, choose_provider, mps_limits
from fairlead.rules.devices.regained import regained_shares
from fairlead.rules.holding.units import GIB, MIB_PER_UNIT
from fairlead.rules.nodes.status import CONFLICT, share_mode

UNHEALTHY: Final = "GPUUnhealthy"
REFUSED: Final = "GPUShareAllocateFailed"
UNGUARDED: Final = "GPUGuardUnavailable"
JUST_GIVEN_SECONDS: Final = 5.0
"""Seconds for which a card that was just allocated counts as held.

The kubelet does not list it at once.
"""
_ILL: Final = Health.UNHEALTHY
_GUARD: Final = Provider.GUARD


class Prepared(Struct, frozen=True, gc=False):
    """What a container gets, and what is to be written before it starts.

    `assigned`: the mark on its pod; None = the pod has it already. `shares`: rows of the grants
    file; none where the asking container is not known yet. `region`: None = no memory guard is in
    the container.
    """

    given: ContainerGrant
    edits: ContainerEdits
    limits: ContainerLimits
    shares: tuple[GivenShare, ...] = ()
    assigned: PatchObject | None = None
    region: Region | None = None


class NodeConclusions(Struct, frozen=True):
    """What follows from all that is known: cards and lists, and the provider in force.

    `events` are new ones; `assigned`: marks that pods do not carry though their containers were
    given their cards.
    """

    plan: CardPlan
    provider: Provider
    events: tuple[RecordObjectEvent, ...] = ()
    assigned: tuple[PatchObject, ...] = ()


class _PlanFrom(Struct, frozen=True, gc=False):
    """All that lists and modes follow from."""

    labels: Mapping[str, str]
    cards: tuple[GpuSlot, ...]
    holders: CardHolders
    fault: str
    is_foreign: bool
    is_core_held: bool


class NodeMachine:
    """Of one node.

    `unit`: in which memory is shared out. `ignored`, `sticky`: see `CardHealths`.
    """

    def __init__(
        self,
        unit: MemoryUnit = GIB,
        ignored: Collection[int] = (),
        sticky: Collection[int] = STICKY,
    ) -> None:
        self._unit = unit
        self._ignored, self._sticky = ignored, sticky
        self.healths = CardHealths((), ignored, sticky)
        self.node: Node | None = None
        self.pods: dict[str, Pod] | None = None
        self.withheld: frozenset[int] = frozenset()
        self.held: tuple[HeldDevices, ...] | None = None
        self.given: dict[tuple[str, str], tuple[GivenShare, ...]] = {}
        self._cards: tuple[GpuSlot, ...] | None = None
        self._means = IsolationMeans()
        self._guard_fault = ""
        self.fault = ""
        self._mps_fault = ""
        self._whole: dict[str, float] = {}
        self._reported: set[tuple[str, ...]] = set()
        self._served: tuple[int, float] | None = None
        self._plan: tuple[_PlanFrom, CardPlan] | None = None

    # --- facts ------------------------------------------------------------------------------------

    def remember(self, faults: Iterable[CardFault], given: Iterable[GivenShare]) -> None:
        """What the process before has left."""
        self.healths = CardHealths(faults, self._ignored, self._sticky)
        self.given.update(_by_seat(given))

    def regain(self, limits: Mapping[str, Sequence[CardLimit]]) -> tuple[GivenShare, ...]:
        """Rows that the process before has not left, from the containers' own files.

        `limits`: what each file contains, by token. Returns the rows that are new.
        """
        pods = list((self.pods or {}).values())
        found = regained_shares(limits, self.held or (), pods, self._cards or (), self.given)
        self.given.update(_by_seat(found))
        return found

    def observe(self, changes: Changes[Any]) -> None:
        """Take what the API server reported of this node, its
        pods, or what an operator took out.
        """
        if changes.kind == KIND_NODES:
            self._observe_node(changes)
        elif changes.kind == KIND_PODS:
            self._observe_pods(changes)
        elif changes.kind == GPU_WITHHELD:
            self._observe_withheld(changes)
        else:
            raise ValueError(f"a node's agent does not follow `{changes.kind}`")

    def _observe_node(self, changes: Changes[Node]) -> None:
        """A node that registers anew is reported again; until then what is known of it stands."""
        for node in changes.rows.values():
            if node is not None:
                self.node = node

    def _observe_pods(self, changes: Changes[Pod]) -> None:
        if changes.is_list:
            known = self.pods or {}
            self.pods = {
                **{uid: known[uid] for uid in changes.unreadable if uid in known},
                **changes.all_rows(),
            }
        elif self.pods is not None:
            for uid, pod in changes.rows.items():
                if pod is None:
                    self.pods.pop(uid, None)
                else:
                    self.pods[uid] = pod

    def _observe_withheld(self, changes: Changes[Withheld]) -> None:
        """A ConfigMap that cannot be read leaves what it contained before."""
        rows = [row for row in changes.rows.values() if row is not None]
        if changes.is_list and changes.unreadable:
            return
        self.withheld = frozenset().union(*(row.indexes for row in rows))

    def driver_shows(self, cards: Iterable[GpuSlot], means: IsolationMeans) -> None:
        """All cards that there are now, each with its memory."""
        shown = [self._in_units(card) for card in cards]
        uuids, indexes = {card.uuid for card in shown}, {card.index for card in shown}
        lost = [
            card
            for card in self._cards or ()
            if card.uuid not in uuids and card.index not in indexes
        ]
        self._cards = tuple(sorted((*shown, *lost), key=lambda card: card.index))
        self.fault = ""
        self._means = structs.replace(means, has_guard=self._means.has_guard)
        self.healths.shown(uuids)

    def mps_reports(self, fault: str) -> None:
        """Why MPS does not limit containers although its daemons run; "" = it does."""
        self._mps_fault = fault

    def guard_shows(self, fault: str) -> None:
        """Why containers cannot have the guard's library; "" = they can."""
        self._guard_fault = fault
        self._means = structs.replace(self._means, has_guard=not fault)

    def driver_fails(self, why: str) -> None:
        """There is no driver now.

        Cards that it showed before, or that the node still lists, are lost.
        """
        self.fault = why
        if self._cards is None and self.node is not None:
            self._cards = self.node.gpus
            self.healths.shown([card.uuid for card in self._cards])
        self.healths.shown(())

    def driver_hangs(self, why: str, now: float) -> None:
        """The driver does not answer: no card is given out whose health cannot be asked for."""
        if self._cards is None:
            self.driver_fails(why)
        self.fault = why
        for card in self._cards or ():
            self.healths.probed(card.uuid, CardAnswer(why), now)

    @property
    def missing(self) -> str:
        """What is not known yet; "" = everything is known."""
        if self.node is None:
            return "the node is not known yet"
        if self.pods is None:
            return "the pods of the node are not known yet"
        if self._cards is None:
            return self.fault or "the driver was not asked yet"
        return (
            ""
            if self.held is not None
            else "the kubelet has not reported yet which containers hold devices"
        )

    def kubelet_reports(self, held: Iterable[HeldDevices]) -> None:
        """What both lists of the kubelet contain now."""
        self.held = tuple(held)
        for each in self.held:
            for device_id in each.ids if each.resource == NVIDIA_GPU else ():
                self._whole.pop(device_id, None)

    @property
    def rows(self) -> list[GivenShare]:
        """Of the grants file."""
        return [share for shares in self.given.values() for share in shares]

    @property
    def uuids(self) -> list[str]:
        """Of all cards."""
        return [card.uuid for card in self._cards or ()]

    # --- what follows -----------------------------------------------------------------------------

    def look(self, now: float, sockets: Collection[str] = ()) -> NodeConclusions:
        """Everything that is to be offered and written.

        `sockets`: names in the plugin directory.
        """
        node = self._known_node()
        holders = self._holders(now)
        judged = self.healths.judged(self._cards or (), self.withheld)
        served, since = self._served = self._served or (0, now)
        allocatable = node.allocatable.get(NVIDIA_GPU, 0)
        is_foreign = is_foreign_plugin(sockets, allocatable, served, now - since)
        bad = unlistable(judged, self._unit)
        fault = bad.reason if bad else self.fault if not judged else ""
        plan = self._planned(
            _PlanFrom(node.labels, judged, holders, fault, is_foreign, bool(self._living(GPU_CORE)))
        )
        count = sum(device.is_healthy for device in plan.lists.get(NVIDIA_GPU, ()))
        if count != served:
            self._served = (count, now)
        return NodeConclusions(plan, self._provider, self._events(plan), self._marks(now))

    def mps_limits(self, now: float, more: Iterable[GivenShare] = ()) -> tuple[MpsLimit, ...]:
        """What the daemons of MPS have to allow, with the rows of a container that is about to
        start. None where the node does not use MPS.
        """
        if self.node is None or choose_provider(self.node.labels, self._means) != Provider.MPS:
            return ()
        return mps_limits(self._cards_now(now)[0], (*self.rows, *more))

    def whole(
        self, ids: Collection[str], now: float, *, has_device_nodes: bool
    ) -> ContainerEdits | DeviceRefusal:
        """What a container gets that has these cards for itself."""
        cards = whole_cards(ids, self._cards_now(now)[0])
        if isinstance(cards, DeviceRefusal):
            return cards
        edits = whole_edits(cards, has_device_nodes=has_device_nodes)
        if not isinstance(edits, DeviceRefusal):
            self._whole.update((card.uuid, now + JUST_GIVEN_SECONDS) for card in cards)
        return edits

    def foreign(self, ids: Collection[str]) -> DeviceRefusal | None:
        """Why these ids of shared memory belong to no container of this node."""
        return foreign_ids(ids, self._cards or ())

    def start(
        self,
        ids: Collection[str],
        now: float,
        files: NodeFiles,
        answered: ContainerLimits | None = None,
    ) -> Prepared | DeviceRefusal:
        """What the container gets that starts with these ids of shared memory.

        `answered`: what the kubelet got for it before (guarded mode); None = nothing. What is not
        known yet may be known in a moment: a refusal that is not final may be asked for again.
        """
        owner = find_owner(GPU_MEMORY, ids, self.held or (), list((self.pods or {}).values()))
        if isinstance(owner, DeviceRefusal):
            return owner
        pod = as_remembered(owner.pod, self.rows)
        cards, whole = self._cards_now(now)
        given = granted(ids, IdsOwner(pod, owner.containers), cards, whole)
        if isinstance(given, DeviceRefusal):
            return given
        if answered is not None and (refusal := otherwise_answered(given, answered.cards)):
            return refusal
        found = self._prepared(given, cards, files, given_shares(given), _mark(owner.pod, now))
        if isinstance(found, DeviceRefusal):
            return found
        if answered is not None:  # its mounts are of the provider that was in force then
            limits = structs.replace(found.limits, is_view_only=answered.is_view_only)
            found = structs.replace(found, limits=limits)
        if not self._has_guard(was_answered=answered is not None):
            return found
        return structs.replace(found, region=fresh_region(now))

    def answer_now(
        self, ids: Collection[str], now: float, files: NodeFiles
    ) -> Prepared | DeviceRefusal:
        """What each container gets that may be asking with these
        ids, whose owner is not known yet.
        """
        cards, whole = self._cards_now(now)
        given = guarded_grant(ids, list((self.pods or {}).values()), self.held or (), cards, whole)
        return (
            given
            if isinstance(given, DeviceRefusal)
            else self._prepared(given, cards, files, (), None)
        )

    def started(self, prepared: Prepared) -> None:
        """Its files are written: the rows of these containers are those."""
        self.given.update(_by_seat(prepared.shares))

    def owner_of(self, ids: Collection[str]) -> Pod | None:
        """Whose start was refused, where that is known."""
        owner = find_owner(GPU_MEMORY, ids, self.held or (), list((self.pods or {}).values()))
        return None if isinstance(owner, DeviceRefusal) else owner.pod

    def whole_holders(self) -> Mapping[str, Collection[str]]:
        """Uids of pods by the card that they have for themselves."""
        pods = KnownPods((self.pods or {}).values())
        found: dict[str, set[str]] = {}
        for each in self.held or ():
            pod = pods.holding(each) if each.resource == NVIDIA_GPU else None
            for uuid in map(uuid_of, each.ids if pod is not None else ()):
                assert pod is not None
                found.setdefault(uuid, set()).add(pod.uid)
        return found

    def api_uid(self, uid: str) -> str:
        """The uid by which the API server knows the pod that the kubelet calls so."""
        return next((pod.uid for pod in (self.pods or {}).values() if kubelet_uid(pod) == uid), uid)

    # --- cleaning ---------------------------------------------------------------------------------

    def forget(self) -> bool:
        """Drop what containers were given whose pods are over. Whether anything was dropped."""
        pods = {kubelet_uid(pod): pod for pod in (self.pods or {}).values()}
        names = {pod.key for pod in pods.values()}
        listed = {f"{each.namespace}/{each.pod}" for each in self.held or () if each.pod}
        over = [
            seat
            for seat, shares in self.given.items()
            if _is_over(shares[0], pods.get(seat[0]), names, listed)
        ]
        for seat in over:
            del self.given[seat]
        return bool(over)

    def tokens(self) -> frozenset[str]:
        """Those whose files a container may still need."""
        rows = {share.token for share in self.rows}
        return frozenset(
            rows | {token(each.resource, each.ids) for each in self._living(GPU_MEMORY)}
        )

    def _living(self, resource: str) -> list[HeldDevices]:
        """Who holds this, without those that are over: the kubelet keeps them in its checkpoint."""
        pods = KnownPods((self.pods or {}).values())
        held = [(each, pods.holding(each)) for each in self.held or () if each.resource == resource]
        return [each for each, pod in held if (not pod.is_finished if pod else bool(each.pod))]

    # --- pieces -----------------------------------------------------------------------------------

    @property
    def limits_by_cgroup(self) -> bool:
        """Whether the driver limits the containers of this node by their cgroups."""
        return self.node is not None and self._provider is Provider.CGROUP

    @property
    def _provider(self) -> Provider:
        """MPS counts as absent while it does not limit."""
        means = structs.replace(self._means, has_mps=False) if self._mps_fault else self._means
        return choose_provider(self._known_node().labels, means)

    def _known_node(self) -> Node:
        assert self.node is not None, "ask `missing` first"
        return self.node

    def _in_units(self, card: GpuSlot) -> GpuSlot:
        return structs.replace(card, units=(card.memory_mib or 0) // MIB_PER_UNIT[self._unit])

    def _holders(self, now: float) -> CardHolders:
        self._whole = {uuid: until for uuid, until in self._whole.items() if until > now}
        pods = list((self.pods or {}).values())
        found = card_holders(self._cards or (), self.held or (), pods, self.rows)
        return structs.replace(found, whole=found.whole | frozenset(self._whole))

    def _cards_now(self, now: float) -> tuple[tuple[GpuSlot, ...], frozenset[str]]:
        """The cards as they are given out now, and those of them
        that a container holds as a whole.
        """
        holders = self._holders(now)
        judged = self.healths.judged(self._cards or (), self.withheld)
        return card_modes(self._known_node().labels, judged, holders), holders.whole

    def _planned(self, base: _PlanFrom) -> CardPlan:
        """The plan; the same value while nothing differs.

        Lists are long, and most looks find nothing new.
        """
        if self._plan is None or base != self._plan[0]:
            plan = card_plan(
                base.labels,
                base.cards,
                base.holders,
                fault=base.fault,
                is_foreign=base.is_foreign,
                is_core_held=base.is_core_held,
            )
            self._plan = base, plan
        return self._plan[1]

    def _has_guard(self, *, was_answered: bool) -> bool:
        """Whether the container that starts may have the guard's library.

        The kubelet keeps an answer, with its mounts, although labels chose another provider since.
        """
        return self._provider is Provider.GUARD or (
            self._means.has_guard and (was_answered or self._provider is Provider.MPS)
        )

    def _prepared(
        self,
        given: ContainerGrant,
        cards: Collection[GpuSlot],
        files: NodeFiles,
        shares: tuple[GivenShare, ...],
        mark: PatchObject | None,
    ) -> Prepared | DeviceRefusal:
        edits = shared_edits(given, cards, self._provider, files)
        if isinstance(edits, DeviceRefusal):
            return edits
        return Prepared(given, edits, container_limits(given, {}, self._provider), shares, mark)

    def _marks(self, now: float) -> tuple[PatchObject, ...]:
        """A mark that could not be written when its container started is written later."""
        uids = {uid for uid, _ in self.given}
        marks = (
            _mark(pod, now)
            for pod in (self.pods or {}).values()
            if pod.is_holding and kubelet_uid(pod) in uids
        )
        return tuple(mark for mark in marks if mark is not None)

    def _events(self, plan: CardPlan) -> tuple[RecordObjectEvent, ...]:
        """Of what is wrong now and was not reported before."""
        node = self._known_node()
        wrong: dict[tuple[str, ...], list[RecordObjectEvent]] = {}
        if conflict := share_mode(node.labels).conflict:
            wrong[CONFLICT, conflict] = [_warning(node_ref(node), CONFLICT, conflict)]
        with_guard = structs.replace(self._means, has_guard=True)
        shares = any(card.mode == CardMode.SHARED for card in plan.cards)
        if self._guard_fault and shares and choose_provider(node.labels, with_guard) == _GUARD:
            message = f"nothing limits the containers on shared GPUs: {self._guard_fault}"
            wrong[UNGUARDED, message] = [_warning(node_ref(node), UNGUARDED, message)]
        for card in plan.cards:
            if card.health == _ILL:
                message = f"GPU {card.index} ({card.uuid}) is Unhealthy: {card.reason}"
                users = [_warning(_pod_ref(pod), UNHEALTHY, message) for pod in self._users(card)]
                wrong[UNHEALTHY, card.uuid, card.reason] = [
                    _warning(node_ref(node), UNHEALTHY, message),
                    *users,
                ]
        new = tuple(
            event for key, events in wrong.items() if key not in self._reported for event in events
        )
        self._reported = set(wrong)
        return new

    def _users(self, card: GpuSlot) -> list[Pod]:
        pods = [pod for pod in (self.pods or {}).values() if pod.is_holding]
        shared = {
            uid
            for (uid, _), shares in self.given.items()
            if any(share.grant.uuid == card.uuid for share in shares)
        }
        whole = [
            each
            for each in self.held or ()
            if each.resource == NVIDIA_GPU and card.uuid in map(uuid_of, each.ids)
        ]
        known = KnownPods(pods)
        holding = {found.uid for each in whole if (found := known.holding(each)) is not None}
        return [pod for pod in pods if kubelet_uid(pod) in shared or pod.uid in holding]


def _by_seat(shares: Iterable[GivenShare]) -> dict[tuple[str, str], tuple[GivenShare, ...]]:
    """By pod uid and container."""
    found: dict[tuple[str, str], tuple[GivenShare, ...]] = {}
    for share in shares:
        seat = (share.pod_uid, share.container)
        found[seat] = (*found.get(seat, ()), share)
    return found


def _is_over(
    share: GivenShare, pod: Pod | None, names: Collection[str], listed: Collection[str]
) -> bool:
    """Whether neither the API server nor the kubelet has the pod any more.

    `names`: of all pods of the API server; `listed`: of those that the kubelet lists.
    """
    if pod is not None:
        return pod.is_finished
    key = f"{share.namespace}/{share.pod}"
    return key in names or key not in listed


def node_changes(
    node: Node, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> PatchObject | None:
    """What the node does not have yet."""
    new_labels = {key: text for key, text in labels.items() if node.labels.get(key) != text}
    new_annotations = {
        key: text for key, text in annotations.items() if node.annotations.get(key) != text
    }
    meta = {
        **({"labels": new_labels} if new_labels else {}),
        **({"annotations": new_annotations} if new_annotations else {}),
    }
    return PatchObject(node_ref(node), {"metadata": meta}) if meta else None


def node_ref(node: Node) -> ObjectRef:
    """The node as it is written to."""
    return ObjectRef("v1", "Node", node.name, "", node.uid, "nodes")


def refusal_event(pod: Pod, refusal: DeviceRefusal) -> RecordObjectEvent:
    """What the pod's owner reads of a start that was refused."""
    return _warning(_pod_ref(pod), REFUSED, refusal.reason)


def _mark(pod: Pod, now: float) -> PatchObject | None:
    """That the pod has its cards. When it was first given them is written once."""
    present = pod.annotations
    wanted = {
        key: "true"
        for key in (ANNOTATION_GPU_ASSIGNED, ANNOTATION_REFERENCE_ASSIGNED)
        if present.get(key) != "true"
    }
    if not wanted:
        return None
    at = (
        present.get(ANNOTATION_GPU_ASSIGN_TIME)
        or present.get(ANNOTATION_REFERENCE_ASSIGN_TIME)
        or str(round(now * 1e9))
    )
    times = {
        key: at
        for key in (ANNOTATION_GPU_ASSIGN_TIME, ANNOTATION_REFERENCE_ASSIGN_TIME)
        if key not in present
    }
    return PatchObject(_pod_ref(pod), {"metadata": {"annotations": {**wanted, **times}}})


def _pod_ref(pod: Pod) -> ObjectRef:
    return ObjectRef("v1", "Pod", pod.name, pod.namespace, pod.uid, "pods")


def _warning(target: ObjectRef, reason: str, message: str) -> RecordObjectEvent:
    return RecordObjectEvent(target, reason, message, "Warning")
