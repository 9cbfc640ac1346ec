"""The usage recorder of a simulated cluster: its decider is the same as on a real one.

It lives in simulated time, also while the world runs ahead: objects of the simulated store become
rows when something has changed, and the cards are read each 30 simulated seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.errors import OutsideError
from fairlead.kinds.job_marks import AllJobMarks
from fairlead.kinds.parts.kind import source_of
from fairlead.kinds.registry import KINDS, one_per_resource
from fairlead.kinds.workloads import OWNER_KINDS
from fairlead.model.actions import Outcome
from fairlead.model.changes import (
    KIND_BUDGETS,
    KIND_NAMESPACES,
    KIND_NODES,
    KIND_PODS,
    KIND_QUOTA_TREES,
    Changes,
    listed,
)
from fairlead.model.sharing import Withheld
from fairlead.model.snapshot import GPU_WITHHELD
from fairlead.model.usage.actions import ClaimLedger, UsageAction
from fairlead.model.usage.ledger import LedgerBounds, LedgerClaim
from fairlead.ports import Timekeeper, UsageLedger
from fairlead.rules.usage.days import day_bounds, time_zone
from fairlead.rules.usage.recording.recorder import Days, UsageRecorder
from fairlead.run.hooks.ledger_queue import FlushedTime, LedgerQueue
from fairlead.run.hooks.simulated_controller import COALESCE_SECONDS, carry_out
from fairlead.settings import USAGE_READING_SECONDS
from fairlead.wire.gpus.topology import WireConfigMap, parse_withheld_map
from fairlead.wire.kube.budgets import WireBudget, WireNamespace, parse_budget, parse_namespace
from fairlead.wire.kube.objects import WireNode, WirePod, parse_node, parse_pod
from fairlead.wire.names import UNHEALTHY_GPUS_NAMESPACE
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree
from fairlead.wire.usage.manifests import followed_job
from fairlead.wire.usage.states import state_body
from fairlead_sim.objects.resources import (
    CONFIG_MAPS,
    ELASTIC_QUOTA_TREES,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.time.timers import Timer
from fairlead_sim.world.snapshot import reading_of
from fairlead_sim.world.world import World

Object = dict[str, Any]


class _Followed(Struct):
    """Objects of a kind become rows."""

    name: str
    decoder: msgspec.json.Decoder[Any]
    parse: Callable[[Any], Any]
    with_object: Callable[[Any, bytes], Any] | None = None

    def row(self, obj: Object) -> Any:
        """None for a malformed object: such an object never runs."""
        try:
            data = msgspec.json.encode(obj)
            row = self.parse(self.decoder.decode(data))
            return row if self.with_object is None else self.with_object(row, data)
        except (msgspec.MsgspecError, ValueError):
            return None


async def record_world(world: World, ledger: UsageLedger, holder: str) -> WorldUsage:
    """Claim the ledger for a world that stands still, and record it from now on."""
    claim = await ledger.claim_ledger(holder, round(world.clock.now() * 1000))
    bounds = await ledger.ledger_bounds()
    queue = LedgerQueue(ledger, claim.epoch, claim.heartbeat)
    days = partial(day_bounds, zone=time_zone(bounds.zone))
    return WorldUsage(world, queue, claim, bounds, days)


class WorldUsage:
    """Records a world from now on. `claim` and `bounds`: of the ledger as it was found."""

    def __init__(
        self, world: World, queue: LedgerQueue, claim: LedgerClaim, bounds: LedgerBounds, days: Days
    ) -> None:
        self._world = world
        self.queue = queue
        self._claim = claim
        self._fold_from = bounds.fold_from
        self._timer: Timer | None = None
        self._changed: dict[ResourceKind, dict[str, Object | None]] = {}
        self._kinds, jobs, workloads = _followed(world)
        self.recorder = UsageRecorder(jobs, workloads, state_body, AllJobMarks(), days)
        for ref, followed in self._kinds.items():
            self.recorder.observe(self._list(ref, followed))
            world.cluster.subscribe(ref, partial(self._on_change, ref))
        for kind in set(self.recorder.kinds) - {each.name for each in self._kinds.values()}:
            self.recorder.observe(listed(kind, {}))
        self._turn()
        self._read()

    def _list(self, ref: ResourceKind, followed: _Followed) -> Changes[Any]:
        rows = {obj["metadata"]["uid"]: followed.row(obj) for obj in self._world.cluster.scan(ref)}
        return listed(followed.name, {uid: row for uid, row in rows.items() if row is not None})

    def _on_change(self, ref: ResourceKind, change: LoggedChange) -> None:
        uid = change.object["metadata"]["uid"]
        gone = change.type == DELETED
        self._changed.setdefault(ref, {})[uid] = None if gone else change.object
        self._turn_at(self._world.clock.now() + COALESCE_SECONDS)

    def _turn_at(self, moment: float) -> None:
        if self._timer is not None and self._timer.callback is not None:
            if self._timer.at <= moment:
                return
            self._timer.cancel()
        self._timer = self._world.timers.at(moment, self._turn)

    def _turn(self) -> None:
        self._timer = None
        now, changed = self._world.clock.now(), self._changed
        self._changed = {}
        for ref, objects in changed.items():
            kind = self._kinds[ref]
            rows = {uid: None if obj is None else kind.row(obj) for uid, obj in objects.items()}
            self.recorder.observe(Changes(kind.name, rows))
        carry_out(self.recorder, self.recorder.look(now), self._apply, now)
        due = self.recorder.next_at
        if due is not None:
            self._turn_at(max(due, now + COALESCE_SECONDS))

    def _apply(self, action: UsageAction) -> Outcome:
        if isinstance(action, ClaimLedger):
            self.recorder.begin(self._claim, self._fold_from, self._world.clock.now())
            return Outcome()
        return self.queue.put(action)

    def _read(self) -> None:
        """Read all cards, as their exporters would."""
        now = self._world.clock.now()
        samples = self._world.devices.sample(is_brief=True)
        self.recorder.readings([reading_of(each, now) for each in samples], now)
        self._world.timers.at(now + USAGE_READING_SECONDS, self._read)

    def time(self, keeper: Timekeeper) -> FlushedTime:
        """The world's time, whose runs end when the ledger has all of them."""
        return FlushedTime(keeper, self.queue)

    async def end(self) -> None:
        """Store what is left, and the hour so far. A store that does not answer keeps nothing."""
        for action in self.recorder.finish(self._world.clock.now()):
            self.queue.put(action)
        with suppress(OutsideError):
            await self.queue.store()


def _followed(world: World) -> tuple[dict[ResourceKind, _Followed], list[str], list[str]]:
    """What a world has of the kinds that are followed, and the names of jobs and of owners."""

    def of(name: str, wire: type[Any], parse: Callable[[Any], Any]) -> _Followed:
        return _Followed(name, msgspec.json.Decoder(wire), parse)

    found = {
        PODS: of(KIND_PODS, WirePod, parse_pod),
        NODES: of(KIND_NODES, WireNode, parse_node),
        NAMESPACES: of(KIND_NAMESPACES, WireNamespace, parse_namespace),
        POD_DISRUPTION_BUDGETS: of(KIND_BUDGETS, WireBudget, parse_budget),
        ELASTIC_QUOTA_TREES: of(KIND_QUOTA_TREES, WireQuotaTree, parse_quota_tree),
        CONFIG_MAPS: of(GPU_WITHHELD, WireConfigMap, _withheld),
    }
    served = {(ref.group, ref.version, ref.plural): ref for ref in world.cluster.kinds()}
    jobs, workloads = list[str](), list[str]()
    for kind in OWNER_KINDS:
        workloads.append(kind.name)
        for version in kind.versions:
            if (ref := served.get((kind.group, version, kind.plural))) is not None:
                found[ref] = of(kind.name, kind.wire, partial(_versioned, kind.parse, version))
                break
    for job in one_per_resource(KINDS):
        jobs.append(source_of(job))
        for version in job.VERSIONS:
            if (ref := served.get((job.GROUP, version, job.PLURAL))) is not None:
                found[ref] = of(source_of(job), job.WIRE, partial(_versioned, job.parse, version))
                found[ref] = replace(found[ref], with_object=followed_job)
                break
    return found, jobs, workloads


def _versioned(parse: Callable[[Any, str], Any], version: str, wire: Any) -> Any:
    return parse(wire, version)


def _withheld(wire: WireConfigMap) -> Withheld | None:
    """None for a ConfigMap that takes no GPUs out of use."""
    if wire.metadata.namespace != UNHEALTHY_GPUS_NAMESPACE:
        return None
    found = parse_withheld_map(wire)
    return found if found.node and found.indexes else None
