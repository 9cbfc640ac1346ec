"""The records of the ledger: who held what from when to when, and how the cluster was.

Specification: docs/spec/usage.md. A record is valid from `started_at`, included, to `ended_at`,
excluded.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.model.devices.gpu import GpuReading

OPEN: Final = 1 << 62
"""`ended_at` of a record that has not ended, so that comparisons need no case for it."""
GPU: Final = 1_000_000
"""One GPU, in the unit of the ledger."""
MOST: Final = (1 << 27) - 1
"""The largest amount: 134 GPUs, 134,217 cores, 128 TiB. A pod that asks for more runs nowhere, and
integrals over two years stay within 63 bits.
"""
HOUR: Final = 3_600_000
"""Milliseconds of an hour of the ledger."""
DAY: Final = 24 * HOUR
"""Milliseconds of 24 hours; a billing day may have 23 or 25."""
RECORDS_KEPT: Final = 90 * DAY
"""Milliseconds for which intervals, hours and states are kept after their end
(docs/spec/usage.md#days).
"""
SUMS_KEPT: Final = 400 * DAY
"""Milliseconds for which days, jobs and prices are kept."""
RELEASES_KEPT: Final = 60_000
"""Milliseconds for which an end, or the moment at which a pod shrank, is remembered, so that the
next pod does not begin before it.
"""
RECENT: Final = 600_000
"""Milliseconds within which a recorder has seen what the API server shows, or has lost its Lease.
"""


class ClosedBy(StrEnum):
    """Why a record ended. `INFERRED`: the recorder was away; it ends at the heartbeat."""

    NOT = ""
    FINISHED = "finished"
    DELETED = "deleted"
    CHANGED = "changed"
    INFERRED = "inferred"


class PriceClass(Struct, frozen=True, order=True):
    """What the price of a node depends on. `labels`: sorted (key, value).

    `gpu`, `cpu_milli`, `memory_mib`: what costs are divided by. `model`: of its GPUs, "" without.
    """

    labels: tuple[tuple[str, str], ...] = ()
    model: str = ""
    gpu: int = 0
    cpu_milli: int = 0
    memory_mib: int = 0


class UsedBy(Struct, frozen=True, order=True):
    """Who is charged. `user`, `leaf` (full name): "" for none."""

    namespace: str
    user: str = ""
    leaf: str = ""


class LedgerJob(Struct, frozen=True, order=True):
    """The job that a pod belongs to; all "" for none. `type`: arena's word."""

    uid: str = ""
    name: str = ""
    type: str = ""


class Amount(Struct, frozen=True, order=True):
    """What a pod holds at a time."""

    gpu: int = 0
    gpu_memory_mib: int = 0
    cpu_milli: int = 0
    memory_mib: int = 0


class LedgerCard(Struct, frozen=True, order=True):
    """A card that a pod holds a part of. `mib` 0: the whole card."""

    uuid: str
    index: int
    mib: int = 0


class PodInterval(Struct, frozen=True):
    """A pod on a node, with unchanged amounts. Key: `pod_uid` and `started_at`.

    The ledger stores an amount above `MOST` as `MOST`.
    """

    pod_uid: str
    started_at: int
    by: UsedBy
    pod: str
    node: str
    price_class: PriceClass
    amount: Amount
    job: LedgerJob = LedgerJob()
    cards: tuple[LedgerCard, ...] = ()
    ended_at: int = OPEN
    closed_by: ClosedBy = ClosedBy.NOT


class NodeInterval(Struct, frozen=True):
    """A node with one price class. Key: `node_uid` and `started_at`."""

    node_uid: str
    started_at: int
    node: str
    price_class: PriceClass
    ended_at: int = OPEN
    closed_by: ClosedBy = ClosedBy.NOT


class PodHour(Struct, frozen=True):
    """How busy the GPUs of a pod interval were in an hour (`hour`: its beginning).

    Key: `pod_uid`, `started_at` of the interval, `hour`. The three add up to what the interval
    held, times its time in the hour.
    """

    pod_uid: str
    started_at: int
    hour: int
    busy: int = 0
    idle: int = 0
    unknown: int = 0


class HeldHour(Struct, frozen=True, gc=False):
    """How busy the GPUs were that pods held on a node in an hour, in one price class of the node:
    the sums of their `PodHour`s.
    """

    hour: int
    node: str
    price_class: PriceClass
    busy: int = 0
    idle: int = 0
    unknown: int = 0


class NodeHour(Struct, frozen=True):
    """What the GPUs of a node interval were in an hour. Key: `node_uid`, `started_at`, `hour`.

    `holders`: (namespace, pod) of those that hold most of what the waiting pods lack, while GPUs
    are stranded.
    """

    node_uid: str
    started_at: int
    hour: int
    held: int = 0
    free: int = 0
    stranded: int = 0
    broken: int = 0
    lacking: str = ""
    holders: tuple[tuple[str, str], ...] = ()


class StateKind(StrEnum):
    """What a kept state is of. `TREE`: the quota tree. `CARDS`: the GPUs of a node as exporters
    report them (`KeptCards`). The kinds below it are what the reasons of waiting pods depend on:
    `WORKLOAD` an owner of pods, `BUDGET` a PodDisruptionBudget, `WITHHELD` the GPUs of a node that
    an operator took out of use.

    `CARDS` and `WITHHELD` have the name of the node as name and uid.
    """

    NODE = "node"
    POD = "pod"
    JOB = "job"
    TREE = "tree"
    CARDS = "cards"
    WORKLOAD = "workload"
    BUDGET = "budget"
    NAMESPACE = "namespace"
    WITHHELD = "withheld"


class KeptCards(Struct, frozen=True, gc=False):
    """The GPUs of a node as its exporter reports them, by index, without values that change all
    the time. `readings` have who is on which card and what is broken.
    """

    node: str
    readings: tuple[GpuReading, ...] = ()


class KeptState(Struct, frozen=True, gc=False):
    """An object as tables showed it. Key: kind, uid and `started_at`. `body`: JSON."""

    kind: StateKind
    uid: str
    started_at: int
    namespace: str
    name: str
    body: bytes
    ended_at: int = OPEN


class JobRecord(Struct, frozen=True):
    """A job, also after it was deleted. Key: `uid`. Times are 0 if they are unknown.

    `manifest`: as `wire/usage/manifests` writes it; "" in a write leaves the one that is stored.
    `deleted_at`: 0 = it exists.
    """

    uid: str
    by: UsedBy
    name: str
    type: str
    api_version: str = ""
    created_at: int = 0
    started_at: int = 0
    finished_at: int = 0
    deleted_at: int = 0
    status: str = ""
    reason: str = ""
    gpu: int = 0
    instances: int = 0
    image: str = ""
    manifest: str = ""


Key = tuple[str, int]
"""Uid and `started_at`."""


class End(Struct, frozen=True):
    """The end of an open record that was stored before."""

    key: Key
    ended_at: int
    closed_by: ClosedBy


class StateEnd(Struct, frozen=True):
    kind: StateKind
    key: Key
    ended_at: int


class LedgerBatch(Struct, frozen=True):
    """One write: all of it is stored, or nothing. `at`: the heartbeat.

    A record whose key is stored already replaces it, and an end of a record that has ended changes
    nothing, so that a batch may be repeated. Ends follow records. An end before the start is the
    start, and the record then covers no time. An hour of an interval that is not stored is left
    out.
    """

    at: int
    pods: tuple[PodInterval, ...] = ()
    pod_ends: tuple[End, ...] = ()
    nodes: tuple[NodeInterval, ...] = ()
    node_ends: tuple[End, ...] = ()
    pod_hours: tuple[PodHour, ...] = ()
    node_hours: tuple[NodeHour, ...] = ()
    states: tuple[KeptState, ...] = ()
    state_ends: tuple[StateEnd, ...] = ()
    jobs: tuple[JobRecord, ...] = ()


class Gap(Struct, frozen=True, order=True):
    """A time in which no recorder ran."""

    started_at: int
    ended_at: int


class LedgerClaim(Struct, frozen=True):
    """What a recorder finds when it begins. `epoch`: its number, the newest.

    `heartbeat`: until when the open records are known to be true, at most the time of the claim;
    0 = the ledger is empty. `pod_hours`, `node_hours`: of the hour of the heartbeat, which go on.
    `jobs`: those that are not deleted. `ended`: sorted uids of pods with an interval that ended
    less than `RECENT` before the heartbeat, so that none is recorded twice. `held`: intervals with
    GPUs that ended in the hour of the heartbeat, for the hours of their nodes, and all that ended
    less than `RELEASES_KEPT` before the heartbeat.
    """

    epoch: int
    heartbeat: int = 0
    pods: tuple[PodInterval, ...] = ()
    ended: tuple[str, ...] = ()
    nodes: tuple[NodeInterval, ...] = ()
    states: tuple[KeptState, ...] = ()
    pod_hours: tuple[PodHour, ...] = ()
    node_hours: tuple[NodeHour, ...] = ()
    jobs: tuple[JobRecord, ...] = ()
    held: tuple[PodInterval, ...] = ()


class LedgerBounds(Struct, frozen=True):
    """Which times the ledger covers: `first` (the heartbeat of the first write; 0 = it is
    empty), `heartbeat`, and gaps between.

    `zone`: the time zone of its billing days. `holder`: the recorder that claimed it last, "" =
    none. `is_off`: no recorder runs here, and none can.
    """

    first: int = 0
    heartbeat: int = 0
    gaps: tuple[Gap, ...] = ()
    folded_until: int = 0
    epoch: int = 0
    zone: str = "UTC"
    holder: str = ""
    is_off: bool = False

    @property
    def fold_from(self) -> int:
        """The time from which billing days are not folded yet; 0 = the ledger is empty."""
        return self.folded_until or self.first
