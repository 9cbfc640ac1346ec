"""The GPUs of all nodes at once: sums for the cluster, and what each pod holds and uses.

The mean utilisation is over GPUs that report. A pod's use is read from its seats, so a pod whose card nobody
can name has counts (from its limits) but no utilisation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.model.occupancy import CardHolder, CardOccupancy, GpuTotals, NodeOccupancy, PodUse
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.occupancy import node_occupancy
from fairlead.rules.holding.units import GIB, MIB_PER_UNIT
from fairlead.rules.nodes.status import EXCLUSIVE, NO_GPU, is_ready
from fairlead.rules.pods.devices import whole_gpus

_NO_USE = PodUse()
Seat = tuple[CardOccupancy, CardHolder]


class ClusterOccupancy:
    """Occupancy of every GPU node by name order; nodes without GPUs are left out.

    Built once per snapshot and asked many times.
    """

    def __init__(self, nodes: Sequence[NodeOccupancy]) -> None:
        self.nodes = tuple(nodes)
        self.by_node = {each.node.name: each for each in self.nodes}
        self._seats: dict[str, list[Seat]] = {}
        self._uses: dict[str, PodUse] = {}
        for each in self.nodes:
            for card in each.cards:
                for holder in card.holders:
                    self._seats.setdefault(holder.pod.key, []).append((card, holder))

    @property
    def unit_mib(self) -> int:
        """MiB of one unit of `aliyun.com/gpu-mem`, for a pod that is nowhere yet (a cluster has one unit)."""
        return next((MIB_PER_UNIT[each.unit] for each in self.nodes if each.units_total), MIB_PER_UNIT[GIB])

    def seats(self, pod: Pod) -> list[Seat]:
        """The cards the pod is known to sit on."""
        return self._seats.get(pod.key, [])

    def use(self, pod: Pod) -> PodUse:
        """What the pod holds and uses; nothing when it is not bound or has finished.

        The answer is kept: a pod is asked about alone and in its job.
        """
        found = self._uses.get(pod.key)
        if found is None:
            found = self._uses[pod.key] = self._use(pod) if pod.is_holding else _NO_USE
        return found

    def _use(self, pod: Pod) -> PodUse:
        seats, whole = self.seats(pod), whole_gpus(pod.limits)
        if not seats and not whole:
            return _NO_USE
        if len(seats) == 1:  # nearly every pod: no sums to make
            used, ratio = seat_used(*seats[0]), seat_utilization(*seats[0])
        else:
            used, ratio = _sum_known(seat_used(*seat) for seat in seats), _mean_known(seat_utilization(*seat) for seat in seats)
        gpus: float = whole or sum(holder.ratio for _, holder in seats)
        return PodUse(gpus, self._memory_allocated(pod, seats, whole), used, ratio)

    def use_together(self, pods: Iterable[Pod]) -> PodUse:
        """A job's use: sums over its pods, and the mean utilisation of the cards its pods sit on."""
        held = [pod for pod in pods if pod.is_holding]
        uses = [self.use(pod) for pod in held]
        return PodUse(
            gpus=sum(use.gpus for use in uses),
            memory_allocated_mib=_sum_known(use.memory_allocated_mib for use in uses),
            memory_used_mib=_sum_known(use.memory_used_mib for use in uses),
            utilization_ratio=_mean_known(seat_utilization(*seat) for pod in held for seat in self.seats(pod)),
        )

    def totals(self) -> GpuTotals:
        """Sums over all GPU nodes. Memory sums leave out nodes that know nothing; None when none does."""
        ratios = [card.reading.utilization_ratio for each in self.nodes for card in each.cards if card.reading]
        return GpuTotals(
            nodes=len(self.nodes),
            nodes_allocated=sum(each.is_allocated for each in self.nodes),
            nodes_unhealthy=sum(not is_ready(each.node) for each in self.nodes),
            nodes_faulty=sum(each.gpus_unhealthy > 0 for each in self.nodes),
            gpus=sum(each.gpus_total for each in self.nodes),
            gpus_allocated=sum(each.gpus_allocated for each in self.nodes),
            gpus_unhealthy=sum(each.gpus_unhealthy for each in self.nodes),
            gpus_reporting=sum(each.gpus_reporting for each in self.nodes),
            memory_total_mib=_sum_known(each.memory_total_mib for each in self.nodes),
            memory_allocated_mib=_sum_known(each.memory_allocated_mib for each in self.nodes),
            memory_used_mib=_sum_known(each.memory_used_mib for each in self.nodes),
            utilization_ratio=_mean_known(ratios),
        )

    def _memory_allocated(self, pod: Pod, seats: Sequence[Seat], whole: int) -> float | None:
        known = [holder.memory_granted_mib for _, holder in seats if holder.memory_granted_mib is not None]
        if seats and len(known) == len(seats) and len(seats) >= whole:
            return sum(known)
        node = self.by_node.get(pod.node)
        if not whole or node is None or not node.gpus_total or node.memory_total_mib is None:
            return None
        return whole * node.memory_total_mib / node.gpus_total


def cluster_occupancy(snapshot: ClusterSnapshot) -> ClusterOccupancy:
    """The occupancy of every node with GPUs."""
    occupied = (node_occupancy(node, snapshot) for node in snapshot.nodes)
    return ClusterOccupancy([each for each in occupied if each.mode != NO_GPU])


def seat_used(card: CardOccupancy, holder: CardHolder) -> float | None:
    """The container's own use; on a card it has alone, the device's (it includes the driver's part)."""
    if holder.memory_used_mib is not None:
        return holder.memory_used_mib
    return card.reading.memory_used_mib if card.reading and holder.mode == EXCLUSIVE else None


def seat_utilization(card: CardOccupancy, holder: CardHolder) -> float | None:
    """The device's utilisation for a card held alone, the container's own share on a shared one."""
    if holder.mode == EXCLUSIVE and card.reading:
        return card.reading.utilization_ratio
    return holder.utilization_ratio


def _sum_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
