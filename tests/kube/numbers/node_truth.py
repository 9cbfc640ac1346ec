"""The truth about one node, its cards and its pods, from kubectl's JSON and the exporters' cards.
In MiB and epoch seconds.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from tests.kube.numbers.reported_cards import (
    CARDS,
    PAST_SECONDS,
    ReportedCard,
    Seat,
    is_holding,
    limits_of,
    shares_of,
)
from tests.kube.numbers.tied_pods import MIG_LARGE, MIG_SMALL
from tests.kube.objects import GPU, GPU_COUNT, GPU_MEMORY, Object

PARTS = {MIG_LARGE: 3, MIG_SMALL: 1}
"""Compute slices of an instance."""
UNITS = 15
"""Units of a shared card."""
HOUR = 3600
SILENT_SECONDS = 300


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def busy_of(card: ReportedCard) -> float | None:
    """The card's utilization; of a divided card the mean of its instances, weighted by their
    compute slices.
    """
    if not card.instances:
        return card.busy
    parts = [(PARTS[f"nvidia.com/mig-{each.profile}"], each.busy) for each in card.instances]
    return sum(count * busy for count, busy in parts) / sum(count for count, _ in parts)


def total_of(card: ReportedCard) -> int:
    return sum(each.total for each in card.instances) or card.total


def used_of(card: ReportedCard) -> int:
    return sum(each.used for each in card.instances) or card.used


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * ratio


def total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def bound_at(pod: Object) -> float:
    """When the scheduler bound the pod, from its condition."""
    (found,) = [
        each
        for each in pod["status"]["conditions"]
        if (each["type"], each["status"]) == ("PodScheduled", "True")
    ]
    return seconds(found["lastTransitionTime"])


class NodeTruth:
    """One node with its cards, and the pods that hold any of them."""

    def __init__(
        self, obj: Object, pods: list[Object], seats: Mapping[tuple[str, int], list[Seat]]
    ) -> None:
        self.name = obj["metadata"]["name"]
        self.labels, status = obj["metadata"]["labels"], obj["status"]
        ready = next(
            (c for c in status["conditions"] if c["type"] == "Ready"), {"status": "Unknown"}
        )
        self.ready, self.ready_since = (
            ready["status"],
            ready.get("lastTransitionTime", obj["metadata"]["creationTimestamp"]),
        )
        self.is_cordoned = bool(obj["spec"].get("unschedulable"))
        self.ip = next(
            each["address"] for each in status["addresses"] if each["type"] == "InternalIP"
        )
        self.capacity, self.allocatable = status["capacity"], status["allocatable"]
        self.cards = [card for card in CARDS if card.node == self.name]
        self.pods = [
            pod
            for pod in pods
            if is_holding(pod) and pod["spec"]["nodeName"] == self.name and limits_of(pod)
        ]
        self.seats = {card.index: seats.get((self.name, card.index), []) for card in self.cards}
        self.offered = int(self.capacity.get(GPU, 0))
        self.gpus = len(self.cards) or self.offered or int(self.capacity.get(GPU_COUNT, 0))
        withheld = self.offered - int(self.allocatable.get(GPU, 0))
        self.broken = max(withheld, sum(not card.is_healthy for card in self.cards))

    @property
    def status(self) -> str:
        return {"True": "Ready", "False": "NotReady"}.get(self.ready, "Unknown")

    @property
    def is_open(self) -> bool:
        return self.ready == "True" and not self.is_cordoned

    @property
    def takes_pods(self) -> bool:
        """Whether quota counts the node: a node that is not ready counts for five minutes more."""
        return not self.is_cordoned and (
            self.ready == "True" or time.time() - seconds(self.ready_since) < SILENT_SECONDS
        )

    @property
    def mode(self) -> str:
        if GPU_MEMORY in self.capacity:
            return "share"
        return "exclusive" if self.offered else "mig" if MIG_LARGE in self.capacity else "none"

    @property
    def model(self) -> str:
        return self.cards[0].model if self.cards else self.labels.get("nvidia.com/gpu.product", "")

    def worth(self, pod: Object) -> float:
        """Cards that the pod holds here: whole cards, time slices, and parts of shared and divided
        cards.
        """
        limits = limits_of(pod)
        whole = limits.get(GPU, 0) * (self.gpus / self.offered if self.offered else 1)
        offered = sum(int(self.capacity.get(name, 0)) * part for name, part in PARTS.items())
        slices = sum(limits.get(name, 0) * part for name, part in PARTS.items())
        return (
            whole
            + (self.gpus * slices / offered if offered else 0)
            + sum(shares_of(pod).values()) / UNITS
        )

    def seats_of(self, pod: Object) -> list[tuple[ReportedCard, Seat]]:
        who = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        return [
            (card, seat)
            for card in self.cards
            for seat in self.seats[card.index]
            if (seat.space, seat.pod) == who
        ]

    def seats_on(self, card: ReportedCard, pod: Object) -> list[Seat]:
        return [seat for on, seat in self.seats_of(pod) if on == card]

    def memory_of(self, pod: Object) -> float:
        if self.cards:
            return sum(math.floor(seat.limit) for _, seat in self.seats_of(pod))
        return limits_of(pod).get(GPU, 0) * float(self.labels["nvidia.com/gpu.memory"])

    def used_by(self, pod: Object) -> float | None:
        """Memory that the pod uses. DCGM reports no use per pod: a pod that has a card whole uses
        all that is used of the card.
        """
        return total(
            card.used if card.family == "dcgm" else seat.used for card, seat in self.seats_of(pod)
        )

    def used_of(self, pod: Object) -> float | None:
        """Memory that the pod holds on cards whose use is reported."""
        reported = [
            seat
            for card, seat in self.seats_of(pod)
            if card.family == "dcgm" or seat.used is not None
        ]
        return total(math.floor(seat.limit) for seat in reported)

    def busy_of(self, pod: Object) -> list[float | None]:
        return [
            card.busy if seat.mode == "exclusive" else seat.busy
            for card, seat in self.seats_of(pod)
        ]

    def idle_of(self, pod: Object) -> float:
        """GPUs that have done no work for this pod for an hour and since it was bound."""
        if self.ready == "Unknown" or min(PAST_SECONDS, time.time() - bound_at(pod)) < HOUR:
            return 0
        idle = [seat for card, seat in self.seats_of(pod) if busy_of(card) == 0 and not seat.busy]
        return sum(seat.units / UNITS if seat.units else 1 for seat in idle)

    @property
    def allocated(self) -> float:
        return sum(self.worth(pod) for pod in self.pods)

    @property
    def memory(self) -> float | None:
        if self.cards:
            return sum(total_of(card) for card in self.cards)
        return self.gpus * float(self.labels["nvidia.com/gpu.memory"]) if self.gpus else None

    @property
    def memory_allocated(self) -> float | None:
        """Pods that take turns on a card may each use all of its memory, but the memory counts
        once.
        """
        return (
            None
            if self.memory is None
            else min(self.memory, sum(self.memory_of(pod) for pod in self.pods))
        )

    @property
    def memory_used(self) -> float | None:
        return total(used_of(card) for card in self.cards)

    @property
    def memory_used_of(self) -> float | None:
        """The memory whose use is reported; None for a node whose cards no exporter reports."""
        return total(total_of(card) for card in self.cards)

    @property
    def busy(self) -> list[float | None]:
        return [busy_of(card) for card in self.cards]

    @property
    def cells(self) -> Counter[str]:
        """How many cards are in each state."""
        if not self.cards:
            held = int(self.allocated)
            return Counter(
                {"allocated": held, "free" if self.is_open else "closed": self.gpus - held}
            )
        return Counter(self._state(card) for card in self.cards)

    def _state(self, card: ReportedCard) -> str:
        if not card.is_healthy:
            return "unhealthy"
        if self.ready == "Unknown":
            return "unreachable"
        modes = {seat.mode for seat in self.seats[card.index]}
        if modes:
            return "allocated" if "exclusive" in modes else "shared"
        return "free" if self.is_open else "closed"
