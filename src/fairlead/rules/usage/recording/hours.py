"""How busy the GPUs of pod intervals were in each hour, and what those of node intervals were
(docs/spec/usage.md#hours).

Sums of an hour stay for one more hour, so that an end that is seen late corrects its row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from msgspec import Struct

from fairlead.model.usage.ledger import HOUR, Key, NodeHour, PodHour

CLOSE_AFTER: Final = 120_000
"""Milliseconds after an hour until its rows are written: the next readings count back into it."""
COUNTS_BACK: Final = 120_000
"""Milliseconds that a reading counts back at most."""
NamedPod = tuple[str, str]


class _CardHour(Struct, gc=False):
    """`read`: weight × ms of readings of a card in the hour."""

    card: str
    read: int = 0
    is_busy: bool = False


class _PodSum(Struct, gc=False):
    """`area`: what it held × ms. `busy` and `idle` are of an earlier recorder of the hour. `cards`:
    a pod has few, and a tuple takes less memory than a dict.
    """

    area: int = 0
    busy: int = 0
    idle: int = 0
    cards: tuple[_CardHour, ...] = ()
    is_new: bool = True


class _NodeSum(Struct):
    total: int = 0
    held: int = 0
    stranded: int = 0
    broken: int = 0
    lacking: str = ""
    holders: tuple[NamedPod, ...] = ()
    is_new: bool = True


class HourBook:
    """Sums of hours from `begins_at` on; time before it is not counted."""

    def __init__(self) -> None:
        self.begins_at = 0
        self._closed_until = 0
        self._pods: dict[int, dict[Key, _PodSum]] = {}
        self._nodes: dict[int, dict[Key, _NodeSum]] = {}
        """By hour. The keys are those of the callers, which use them for all hours."""
        self._read_at: dict[str, dict[str, int]] = {}
        """By node and card."""

    def begin(
        self, at: int, pod_hours: tuple[PodHour, ...], node_hours: tuple[NodeHour, ...]
    ) -> None:
        """Count from `at` on, the beginning of an hour; the rows of an earlier recorder go on."""
        self.begins_at = self._closed_until = at
        for row in pod_hours:
            if row.hour >= at:
                total = row.busy + row.idle + row.unknown
                key = row.pod_uid, row.started_at
                found = _PodSum(total, row.busy, row.idle, is_new=False)
                self._pods.setdefault(row.hour, {})[key] = found
        for node in node_hours:
            if node.hour >= at:
                total = node.held + node.free + node.stranded + node.broken
                key = node.node_uid, node.started_at
                self._nodes.setdefault(node.hour, {})[key] = _NodeSum(
                    total,
                    node.held,
                    node.stranded,
                    node.broken,
                    node.lacking,
                    node.holders,
                    is_new=False,
                )

    def counted(self, key: Key, hour: int) -> int | None:
        """The area of an earlier recorder's row; None without a row."""
        found = self._pods.get(hour, {}).get(key)
        return None if found is None else found.area

    def counted_of_node(self, key: Key, hour: int) -> int | None:
        found = self._nodes.get(hour, {}).get(key)
        return None if found is None else found.total

    # --- what was held ----------------------------------------------------------------------------

    def held(self, key: Key, gpu: int, start: int, end: int) -> None:
        """A pod interval held `gpu` in this time; an `end` before the start takes time back."""
        for hour, span in self._parts(start, end):
            found = self._pod(key, hour)
            found.area += gpu * span
            found.is_new = True

    def on_node(self, key: Key, gpu: int, start: int, end: int) -> None:
        """Pods on a node held `gpu` in an interval of it."""
        for hour, span in self._parts(start, end):
            found = self._node(key, hour)
            found.held += gpu * span
            found.is_new = True

    def node_time(
        self, key: Key, gpu: int, start: int, end: int, *, broken: int = 0, stranded: int = 0
    ) -> None:
        """A node existed, with this capacity, part of which was broken and stranded."""
        for hour, span in self._parts(start, end):
            found = self._node(key, hour)
            found.total += gpu * span
            found.broken += broken * span
            found.stranded += stranded * span
            found.is_new = True

    def stranded(self, key: Key, at: int, lacking: str, holders: tuple[NamedPod, ...]) -> None:
        """Name what GPUs are stranded for."""
        found = self._node(key, at - at % HOUR)
        found.lacking, found.holders = lacking, holders

    # --- readings ---------------------------------------------------------------------------------

    def read(self, node: str, card: str, at: int) -> tuple[int, int] | None:
        """Note a reading of a card; the time for which it counts, None for none."""
        cards = self._read_at.get(node)
        if cards is None:
            cards = self._read_at[node] = {}
        before = cards.get(card)
        if before is not None and before >= at:
            return None
        cards[card] = at
        return None if before is None else (max(before, at - COUNTS_BACK), at)

    def used(
        self, key: Key, card: str, weight: int, start: int, end: int, *, is_busy: bool
    ) -> None:
        """A pod held `weight` of a card in a time for which a reading counts."""
        for hour, span in self._parts(start, end):
            found = self._pod(key, hour)
            for use in found.cards:
                if use.card == card:
                    break
            else:
                use = _CardHour(card)
                found.cards = (*found.cards, use)
            use.read += weight * span
            use.is_busy = use.is_busy or is_busy
            found.is_new = True

    def forget_cards(self, nodes: Collection[str]) -> None:
        """Forget the cards of other nodes than these."""
        self._read_at = {node: cards for node, cards in self._read_at.items() if node in nodes}

    # --- rows -------------------------------------------------------------------------------------

    def next_close(self, at: int) -> int:
        """The end of the hour whose rows are due at `at`; 0 = none."""
        ended = (at - CLOSE_AFTER) // HOUR * HOUR
        return ended if ended > self._closed_until else 0

    def close(self, until: int) -> tuple[list[PodHour], list[NodeHour]]:
        """The rows of hours that begin before `until` and have changed."""
        pods, nodes = [], []
        for hour, pod_sums in self._pods.items():
            for key, pod in pod_sums.items() if hour < until else ():
                if pod.is_new and pod.area > 0:
                    pods.append(_pod_hour(key, hour, pod))
                pod.is_new = False
        for hour, node_sums in self._nodes.items():
            for key, node in node_sums.items() if hour < until else ():
                if node.is_new and node.total > 0:
                    nodes.append(_node_hour(key, hour, node))
                node.is_new = False
        self._closed_until = max(self._closed_until, until // HOUR * HOUR)
        self.begins_at = max(self.begins_at, self._closed_until - HOUR)
        self._pods = {hour: sums for hour, sums in self._pods.items() if hour >= self.begins_at}
        self._nodes = {hour: sums for hour, sums in self._nodes.items() if hour >= self.begins_at}
        return pods, nodes

    def _pod(self, key: Key, hour: int) -> _PodSum:
        sums = self._pods.get(hour)
        if sums is None:
            sums = self._pods[hour] = {}
        found = sums.get(key)
        if found is None:
            found = sums[key] = _PodSum()
        return found

    def _node(self, key: Key, hour: int) -> _NodeSum:
        sums = self._nodes.setdefault(hour, {})
        found = sums.get(key)
        if found is None:
            found = sums[key] = _NodeSum()
        return found

    def _parts(self, start: int, end: int) -> Iterable[tuple[int, int]]:
        """The time by hours, as (hour, ms); ms are negative for an end before the start."""
        hour = start - start % HOUR
        if self.begins_at <= start < end <= hour + HOUR:  # nearly always
            return ((hour, end - start),)
        return self._several_parts(start, end)

    def _several_parts(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        sign, start, end = (1, start, end) if start <= end else (-1, end, start)
        start = max(start, self.begins_at)
        while start < end:
            hour = start - start % HOUR
            until = min(end, hour + HOUR)
            yield hour, sign * (until - start)
            start = until


def _pod_hour(key: Key, hour: int, found: _PodSum) -> PodHour:
    cards = found.cards
    busy = found.busy + sum(each.read for each in cards if each.is_busy)
    idle = found.idle + sum(each.read for each in cards if not each.is_busy)
    if len(cards) == 1 and idle and busy:  # of one card, an earlier recorder's time, too
        busy, idle = busy + idle, 0
    busy = min(busy, found.area)
    idle = min(idle, found.area - busy)
    return PodHour(*key, hour, busy, idle, found.area - busy - idle)


def _node_hour(key: Key, hour: int, found: _NodeSum) -> NodeHour:
    held = min(found.held, found.total)
    broken = min(found.broken, found.total - held)
    stranded = min(found.stranded, found.total - held - broken)
    return NodeHour(
        *key,
        hour,
        held,
        found.total - held - broken - stranded,
        stranded,
        broken,
        found.lacking if stranded else "",
        found.holders if stranded else (),
    )
