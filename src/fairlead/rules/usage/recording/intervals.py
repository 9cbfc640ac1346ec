"""Intervals of pods and nodes, kept as the cluster changes (docs/spec/usage.md#pod-intervals).

All times are milliseconds. What changes goes to `Pending`, and the time that passed to `HourBook`.

Invariants: `pods` has the open intervals by uid, and `NodeBook.pods` those of a node, whose amounts
add up to its `gpu`, `cpu_milli` and `memory_mib`. At no time do pods hold more than the price class
of their node has: a pod whose bind is stamped with a whole second begins when the pods before it
have ended or shrunk, and a class grows with what its pods hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.usage.ledger import (
    HOUR,
    OPEN,
    RELEASES_KEPT,
    Amount,
    ClosedBy,
    End,
    Key,
    LedgerCard,
    LedgerJob,
    NodeInterval,
    PodInterval,
    PriceClass,
    UsedBy,
)
from fairlead.rules.nodes.status import NO_GPU
from fairlead.rules.usage.recording.amounts import NodeGpus, held_by, node_gpus
from fairlead.rules.usage.recording.hours import HourBook
from fairlead.rules.usage.recording.pending import Pending
from fairlead.rules.usage.recording.price_class import price_class

_NO_GPUS = NodeGpus(NO_GPU)
_NO_CLASS = PriceClass()
_NO_JOB = LedgerJob()
SECOND: Final = 1000


class OpenPod(Struct):
    """`counted_to`: until when its hours have been counted. `key`: of the row; one for all hours of
    the interval.
    """

    row: PodInterval
    counted_to: int
    key: Key = ("", 0)

    def __post_init__(self) -> None:
        self.key = self.row.pod_uid, self.row.started_at

    def go_on(self, row: PodInterval) -> None:
        """The pod has this row now."""
        self.row = row
        if self.key[1] != row.started_at:
            self.key = row.pod_uid, row.started_at


class NodeBook(Struct):
    """A node by name; `row` None: its object is not known. `released`: (time, amount) of what pods
    no longer hold since then.

    `exists_since`: since when hours of the node are counted. `stranded`: the part of its free GPUs
    that is stranded now. `counted_parts`: broken and stranded GPUs as they were counted last.
    """

    name: str
    node: Node | None = None
    gpus: NodeGpus = _NO_GPUS
    row: NodeInterval | None = None
    exists_since: int = 0
    counted_to: int = 0
    pods: set[str] = set()
    released: list[tuple[int, Amount]] = []
    gpu: int = 0
    cpu_milli: int = 0
    memory_mib: int = 0
    stranded: int = 0
    counted_parts: tuple[int, int] = (0, 0)
    last_class: PriceClass = _NO_CLASS

    @property
    def price_class(self) -> PriceClass:
        return self.row.price_class if self.row is not None else self.last_class

    @property
    def held(self) -> Amount:
        return Amount(self.gpu, 0, self.cpu_milli, self.memory_mib)

    @property
    def broken(self) -> int:
        """GPUs of the capacity that are not allocatable and that no pod holds."""
        return max(0, min(self.gpus.broken, self.price_class.gpu - self.gpu))

    @property
    def free(self) -> int:
        """GPUs that are neither held nor broken."""
        return max(0, self.price_class.gpu - self.gpu - self.broken)


class ChargedPod(Struct, frozen=True):
    """A bound pod as the cluster shows it now, and who is charged for it."""

    pod: Pod
    by: UsedBy
    job: LedgerJob = _NO_JOB


class Intervals:
    """`inferred`: how many records ended while no recorder ran."""

    def __init__(self, pending: Pending, hours: HourBook) -> None:
        self.pods: dict[str, OpenPod] = {}
        self.nodes: dict[str, NodeBook] = {}
        self.inferred = 0
        self._pending = pending
        self._hours = hours
        self._touched: dict[str, int] = {}

    def begin(
        self,
        pods: Collection[PodInterval],
        nodes: Iterable[NodeInterval],
        held: Collection[PodInterval],
        at: int,
    ) -> None:
        """Take the open intervals of the ledger. `at`: its heartbeat. `held`: of its claim."""
        self.pods.clear()
        self.nodes.clear()
        hour = max(self._hours.begins_at, at - at % HOUR)
        for node in nodes:
            since = max(node.started_at, hour)
            was_counted = (
                self._hours.counted_of_node((node.node_uid, node.started_at), hour) is not None
            )
            book = self.nodes[node.node] = NodeBook(node.node, row=node)
            book.last_class = node.price_class
            book.counted_to = book.exists_since = max(since, at) if was_counted else since
        for row in pods:
            since = max(row.started_at, hour)
            key = row.pod_uid, row.started_at
            counted = self._hours.counted(key, hour)
            opened = OpenPod(row, since)
            if counted is not None and row.amount.gpu:
                missing = row.amount.gpu * max(0, at - since) - counted
                if missing > 0:  # an end in order, and then another one without
                    span = missing // row.amount.gpu
                    self._hours.held(key, row.amount.gpu, since, since + span)
                opened.counted_to = max(since, at)
            self.pods[row.pod_uid] = opened
            self._sum(self._book(row.node), row.pod_uid, row.amount, 1)
        held = [each for each in held if each.started_at < each.ended_at]
        following = {(each.pod_uid, each.started_at): each for each in (*pods, *held)}
        for row in held:
            self._count_on_node(row, self._book(row.node), row.started_at, row.ended_at)
            self._release(row, row.ended_at, following.get((row.pod_uid, row.ended_at)))

    def repair_clock(self, now: int) -> None:
        """The clock went back to `now`: ends that it has not reached any more happened just now."""
        for book in self.nodes.values():
            book.released = [(min(at, now), amount) for at, amount in book.released]

    # --- nodes ------------------------------------------------------------------------------------

    def put_node(self, node: Node, uid: str, started_at: int, now: int, doubt: int | None) -> bool:
        """A node as it is. `doubt`: a record of another object of its name ended then, at the
        latest. Returns whether amounts of its pods may have changed.
        """
        book = self._book(node.name)
        if book.row is not None and book.row.node_uid != uid:
            self._end_node(book, now, doubt)
        before, book.node, book.gpus = book.gpus, node, node_gpus(node)
        if book.row is None:
            first = price_class(node, book.gpus)
            book.row = NodeInterval(uid, started_at, node.name, first)
            book.last_class, book.counted_to, book.exists_since = first, started_at, started_at
            self._pending.put_node(book.row)
        self._touch(node.name, now)
        return not _same(before, book.gpus)

    def drop_node(self, name: str, now: int, doubt: int | None) -> None:
        """Its object is gone. Its pods remain until theirs are."""
        book = self.nodes.get(name)
        if book is not None and book.row is not None:
            self._end_node(book, now, doubt)
            book.node, book.gpus = None, _NO_GPUS
            self._forget_if_empty(book)

    def _end_node(self, book: NodeBook, now: int, doubt: int | None) -> None:
        row = book.row
        assert row is not None
        end, why = _gone(row.started_at, now, doubt)
        self._count_node(book, end)
        self._count_pods(book, end)
        self._pending.end_node(End((row.node_uid, row.started_at), end, why))
        self.inferred += doubt is not None
        book.last_class, book.row, book.stranded = row.price_class, None, 0

    # --- pods -------------------------------------------------------------------------------------

    def start(self, uid: str, charged: ChargedPod, now: int) -> None:
        """A pod that is bound, or has finished, and has no record."""
        pod, book = charged.pod, self._book(charged.pod.node)
        bound = min(milliseconds(pod.held_since), now)
        held = held_by(pod, book.gpus)
        end = finished_at(pod, now) if pod.is_finished else OPEN
        start, fits = self._first_fit(book, bound, held.amount)
        start = min(start, end)
        row = PodInterval(
            uid,
            start,
            charged.by,
            pod.name,
            pod.node,
            book.price_class,
            held.amount,
            charged.job,
            held.cards,
        )
        opened = self.pods[uid] = OpenPod(row, start)
        self._sum(book, uid, held.amount, 1)
        self._touch(book.name, now if fits else start)
        self._pending.put_pod(row)
        if end != OPEN:
            self._end(uid, opened, end, ClosedBy.FINISHED)

    def change(self, uid: str, charged: ChargedPod, now: int, doubt: int | None) -> None:
        """A pod with a record, as it is now. A change ends the record and begins another."""
        opened = self.pods[uid]
        row, book = opened.row, self._book(charged.pod.node)
        held = held_by(charged.pod, book.gpus) if book.node is not None else None
        new = replace(
            row,
            by=charged.by,
            node=charged.pod.node,
            amount=row.amount if held is None else held.amount,
            job=charged.job if charged.job.uid or charged.job.name else row.job,
            cards=held.cards if held is not None and held.cards else row.cards,
        )
        if (new.by, new.node, new.amount) == (row.by, row.node, row.amount):
            if new != row:
                opened.go_on(new)
                self._pending.put_pod(new)
            return
        at = max(row.started_at, min(now, doubt) if doubt is not None else now)
        self._cut(uid, opened, new, at, ClosedBy.CHANGED if doubt is None else ClosedBy.INFERRED)

    def cards_found(self, uid: str, cards: tuple[LedgerCard, ...]) -> None:
        """Readings show which cards a pod holds that no grant names."""
        opened = self.pods[uid]
        opened.go_on(replace(opened.row, cards=cards))
        self._pending.put_pod(opened.row)

    def finish(self, uid: str, pod: Pod, now: int) -> None:
        self._end(uid, self.pods[uid], finished_at(pod, now), ClosedBy.FINISHED)

    def gone(self, uid: str, now: int, doubt: int | None) -> None:
        """Its object is gone."""
        opened = self.pods[uid]
        self.inferred += doubt is not None
        self._end(uid, opened, *_gone(opened.row.started_at, now, doubt))

    def _end(self, uid: str, opened: OpenPod, at: int, why: ClosedBy) -> None:
        row, book = opened.row, self._book(opened.row.node)
        end = max(at, row.started_at)
        self._count(uid, opened, book, end)
        self._pending.end_pod(End((uid, row.started_at), end, why))
        del self.pods[uid]
        self._sum(book, uid, row.amount, -1)
        self._release(row, end)
        self._touch(book.name, OPEN)

    def _cut(self, uid: str, opened: OpenPod, new: PodInterval, at: int, why: ClosedBy) -> None:
        """End the record at `at` and go on with `new`; a record that begins then is replaced."""
        row, before = opened.row, self._book(opened.row.node)
        self._count(uid, opened, before, at)
        if row.started_at < at:
            self._pending.end_pod(End((uid, row.started_at), at, why))
            self.inferred += why == ClosedBy.INFERRED
            new = replace(new, started_at=at)
            self._release(row, at, new)
        opened.go_on(replace(new, price_class=self._book(new.node).price_class))
        self._pending.put_pod(opened.row)
        self._sum(before, uid, row.amount, -1)
        after = self._book(new.node)
        self._sum(after, uid, new.amount, 1)
        self._touch(before.name, at)
        self._touch(after.name, at)

    def _first_fit(self, book: NodeBook, start: int, amount: Amount) -> tuple[int, bool]:
        """When the pod fits beside those that have ended or shrunk since it was bound, and not
        before the class of its node: binds have whole seconds, ends and changes have not. And
        whether it fits then; if it never does, the class of the node grows at that time.
        """
        if book.row is not None and start < book.row.started_at < start + SECOND:
            start = book.row.started_at
        if book.node is None:
            return start, False
        late = sorted((each for each in book.released if each[0] > start), key=lambda each: each[0])
        most = book.price_class
        for at in (start, *(until for until, _ in late)):
            beside = [held for until, held in late if until > at]
            if _fits((book.held, amount, *beside), most):
                return at, True
        return (late[-1][0] if late else start), False

    # --- settling ---------------------------------------------------------------------------------

    def settle(self, now: int) -> list[str]:
        """Bring the price classes up to date after all changes; the names of touched nodes."""
        touched, self._touched = self._touched, {}
        for name, since in touched.items():
            book = self.nodes.get(name)
            if book is None:
                continue
            book.released = [each for each in book.released if each[0] > now - RELEASES_KEPT]
            if book.node is not None and book.row is not None:
                new = price_class(book.node, book.gpus, book.held)
                if new != book.row.price_class:
                    is_too_small = not _fits((book.held,), book.row.price_class)
                    self._reclass(book, new, min(since, now) if is_too_small else now)
            self._forget_if_empty(book)
        return list(touched)

    def _reclass(self, book: NodeBook, new: PriceClass, at: int) -> None:
        row = book.row
        assert row is not None
        at = max(at, row.started_at)
        self._count_node(book, at)
        self._count_pods(book, at)
        if row.started_at < at:
            self._pending.end_node(End((row.node_uid, row.started_at), at, ClosedBy.CHANGED))
        book.row = replace(row, started_at=at, price_class=new)
        book.last_class = new
        self._pending.put_node(book.row)
        for uid in book.pods:
            opened = self.pods[uid]
            if opened.row.price_class != new:
                if opened.row.started_at < at:
                    end = End((uid, opened.row.started_at), at, ClosedBy.CHANGED)
                    self._pending.end_pod(end)
                    opened.go_on(replace(opened.row, started_at=at))
                opened.go_on(replace(opened.row, price_class=new))
                self._pending.put_pod(opened.row)

    # --- counting ---------------------------------------------------------------------------------

    def count_all(self, at: int) -> None:
        """Count the hours of all pods and nodes up to `at`."""
        for uid, opened in self.pods.items():
            if opened.row.amount.gpu:
                self._count(uid, opened, self._book(opened.row.node), at)
        for book in self.nodes.values():
            if at > book.counted_to:
                self._count_node(book, at)

    def strand(self, book: NodeBook, stranded: int, now: int) -> None:
        """From now on this part of its free GPUs is stranded."""
        if stranded != book.stranded:
            self._count_node(book, now)
            book.stranded = stranded

    def count_node(self, name: str, now: int) -> None:
        """Count what its GPUs were until now, before that changes."""
        if (book := self.nodes.get(name)) is not None:
            self._count_node(book, now)

    def _count(self, uid: str, opened: OpenPod, book: NodeBook, at: int) -> None:
        gpu, since = opened.row.amount.gpu, opened.counted_to
        opened.counted_to = max(at, opened.row.started_at)
        if gpu and since != opened.counted_to:
            self._hours.held(opened.key, gpu, since, opened.counted_to)
            self._count_on_node(opened.row, book, since, opened.counted_to)

    def _count_on_node(self, row: PodInterval, book: NodeBook, since: int, until: int) -> None:
        """Not the time before the hours of the node are counted."""
        if book.row is not None:
            began, key = book.exists_since, (book.row.node_uid, book.row.started_at)
            self._hours.on_node(key, row.amount.gpu, max(since, began), max(until, began))

    def _count_pods(self, book: NodeBook, at: int) -> None:
        for uid in book.pods:
            self._count(uid, self.pods[uid], book, at)

    def _count_node(self, book: NodeBook, at: int) -> None:
        row = book.row
        if row is None:
            return
        since, book.counted_to = book.counted_to, max(at, row.started_at)
        if since < book.counted_to:
            book.counted_parts = book.broken, book.stranded
        if row.price_class.gpu and since != book.counted_to:
            broken, stranded = book.counted_parts
            self._hours.node_time(
                (row.node_uid, row.started_at),
                row.price_class.gpu,
                since,
                book.counted_to,
                broken=broken,
                stranded=stranded,
            )

    # --- books ------------------------------------------------------------------------------------

    def _book(self, name: str) -> NodeBook:
        found = self.nodes.get(name)
        if found is None:
            found = self.nodes[name] = NodeBook(name)
        return found

    def _sum(self, book: NodeBook, uid: str, amount: Amount, sign: int) -> None:
        (book.pods.add if sign > 0 else book.pods.discard)(uid)
        book.gpu += sign * amount.gpu
        book.cpu_milli += sign * amount.cpu_milli
        book.memory_mib += sign * amount.memory_mib

    def _release(self, row: PodInterval, at: int, after: PodInterval | None = None) -> None:
        """Remember what the pod no longer holds on its node since `at`. `after`: its next record,
        which may be on another node.
        """
        held = row.amount
        if after is not None and after.node == row.node:
            held = _without(held, after.amount)
        self._book(row.node).released.append((at, held))

    def _touch(self, name: str, since: int) -> None:
        self._touched[name] = min(since, self._touched.get(name, OPEN))

    def _forget_if_empty(self, book: NodeBook) -> None:
        if book.row is None and not book.pods:
            self.nodes.pop(book.name, None)


def milliseconds(moment: float | None) -> int:
    return round((moment or 0.0) * 1000)


def finished_at(pod: Pod, now: int) -> int:
    """The latest end of its containers, else now."""
    ends = [each.finished_at for each in (*pod.statuses, *pod.init_statuses)]
    return min(now, max((milliseconds(each) for each in ends if each is not None), default=now))


def first_starts(pods: Iterable[Pod], now: int) -> Mapping[str, int]:
    """By node, when the first of these pods was bound."""
    found: dict[str, int] = {}
    for pod in pods:
        if pod.node:
            bound = min(milliseconds(pod.held_since), now)
            found[pod.node] = min(bound, found.get(pod.node, bound))
    return found


def _gone(started_at: int, now: int, doubt: int | None) -> tuple[int, ClosedBy]:
    if doubt is None:
        return max(started_at, now), ClosedBy.DELETED
    return max(started_at, min(now, doubt)), ClosedBy.INFERRED


def _without(amount: Amount, less: Amount) -> Amount:
    """What is left of an amount, in the parts that have a capacity."""
    return Amount(
        max(0, amount.gpu - less.gpu),
        0,
        max(0, amount.cpu_milli - less.cpu_milli),
        max(0, amount.memory_mib - less.memory_mib),
    )


def _fits(amounts: Iterable[Amount], most: PriceClass) -> bool:
    held = tuple(amounts)
    return (
        sum(each.gpu for each in held) <= most.gpu
        and sum(each.cpu_milli for each in held) <= most.cpu_milli
        and sum(each.memory_mib for each in held) <= most.memory_mib
    )


def _same(one: NodeGpus, other: NodeGpus) -> bool:
    """Whether pods hold the same of both."""
    if (one.mode, one.worth, one.card_mib) != (other.mode, other.worth, other.card_mib):
        return False
    first, second = (each.shared.cards if each.shared else [] for each in (one, other))
    return [(each.key, each.units, each.memory_mib) for each in first] == [
        (each.key, each.units, each.memory_mib) for each in second
    ]
