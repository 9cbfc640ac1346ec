"""What usage costs: shares of the price of a node, as exact fractions that add up to it.

A cost is linear in the integrals, so that cutting a time into parts changes no sum, and the pods of
a node never cost more than the node. Specification: docs/spec/usage.md#cost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from math import lcm
from operator import add
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct

from fairlead.model.usage.ledger import HOUR, PriceClass
from fairlead.model.usage.prices import Price
from fairlead.model.usage.sums import NodeSum, UsageIntegral, UsageSum
from fairlead.rules.usage.prices import PERMILLE, PriceBook

GPU_SHARE: Final = Fraction(9, 10)
"""w of a class with GPUs, where the price has no share of its own."""
CPU_SHARE: Final = Fraction(1, 2)
"""a: of what is not the GPUs' share, the part of the CPU."""
NOTHING: Final = Fraction(0)
_HELD: Final = ("used", "idle", "unknown")
_PARTS: Final = (*_HELD, "free", "stranded", "broken")

Key = TypeVar("Key", bound=Hashable)


class Weights(NamedTuple):
    """Which part of a node's price is of its GPUs, CPU and memory; they add up to 1."""

    gpu: Fraction
    cpu: Fraction
    memory: Fraction


def weights(price_class: PriceClass, price: Price) -> Weights:
    """What a class does not have gets no share.

    >>> cls = PriceClass(gpu=8_000_000, cpu_milli=64_000, memory_mib=524_288)
    >>> [str(each) for each in weights(cls, Price((), "EUR", 0, 0, 0))]
    ['9/10', '1/20', '1/20']
    """
    has_rest = price_class.cpu_milli > 0 or price_class.memory_mib > 0
    if price_class.gpu <= 0:
        gpu = NOTHING
    elif not has_rest:
        gpu = Fraction(1)
    elif price.gpu_permille is None:
        gpu = GPU_SHARE
    else:
        gpu = Fraction(price.gpu_permille, PERMILLE)
    if price_class.cpu_milli <= 0:
        cpu = NOTHING
    elif price_class.memory_mib <= 0:
        cpu = Fraction(1)
    else:
        cpu = CPU_SHARE
    memory = 1 - cpu if price_class.memory_mib > 0 else NOTHING
    return Weights(gpu, (1 - gpu) * cpu, (1 - gpu) * memory)


def node_time(integral: UsageIntegral, price_class: PriceClass, price: Price) -> Fraction:
    """How much of a node's time was held: milliseconds of a whole node."""
    shares = weights(price_class, price)
    held = NOTHING
    if shares.gpu:
        held += shares.gpu * integral.gpu / price_class.gpu
    if shares.cpu:
        held += shares.cpu * integral.cpu / price_class.cpu_milli
    if shares.memory:
        held += shares.memory * integral.memory / price_class.memory_mib
    return held


class Charge(Struct, frozen=True):
    """Micro-units, as exact fractions. `list_cost`: at list prices; a price without a list price is
    its own.
    """

    cost: Fraction = NOTHING
    list_cost: Fraction = NOTHING

    def __add__(self, other: Charge) -> Charge:
        return Charge(self.cost + other.cost, self.list_cost + other.list_cost)


def charge(node_ms: Fraction | int, price: Price) -> Charge:
    """The price of a node for this time.

    >>> charge(1_800_000, Price((), "EUR", 40_000_000, 0, 0, list_node_hour=50_000_000))
    Charge(cost=Fraction(20000000, 1), list_cost=Fraction(25000000, 1))
    """
    listed = price.node_hour if price.list_node_hour is None else price.list_node_hour
    hours = Fraction(node_ms) / HOUR
    return Charge(hours * price.node_hour, hours * listed)


class Total(Struct, frozen=True):
    """Usage of one owner, or of anything else, and what it cost.

    `charge`: None = no part of it has a price. `unpriced`: the GPU integral of the rest. `pods`:
    counted once for each sum.
    """

    integral: UsageIntegral = UsageIntegral()
    pods: int = 0
    charge: Charge | None = None
    unpriced: int = 0


def totals(
    sums: Iterable[UsageSum], book: PriceBook, key: Callable[[UsageSum], Key]
) -> dict[Key, Total]:
    """By key, in the order of first appearance. No sum crosses the beginning of a billing day, so
    that each has one price.
    """
    rates, found = _Rates(book), dict[Key, _Added]()
    for each in sums:
        owner = key(each)
        added = found.get(owner)
        if added is None:
            added = found[owner] = _Added()
        added.add(each, rates.of(each.price_class, each.day))
    return {owner: added.total for owner, added in found.items()}


class _Rate(NamedTuple):
    """What a unit of each integral costs, without the price: whole numbers over `divisor`."""

    gpu: int
    cpu: int
    memory: int
    divisor: int
    node_hour: int
    list_node_hour: int


class _Rates:
    """The rates of classes on days, each computed once. Classes are looked up by identity:
    a hundred thousand sums share a few of them.
    """

    def __init__(self, book: PriceBook) -> None:
        self._book = book
        self._known: dict[tuple[int, int], tuple[PriceClass, _Rate | None]] = {}
        self._rates: dict[tuple[PriceClass, Price], _Rate] = {}

    def of(self, price_class: PriceClass, day: int) -> _Rate | None:
        place = id(price_class), day
        known = self._known.get(place)
        if known is None or known[0] is not price_class:
            price = self._book.at(price_class, day)
            rate = None if price is None else self._rate(price_class, price)
            known = self._known[place] = price_class, rate
        return known[1]

    def _rate(self, price_class: PriceClass, price: Price) -> _Rate:
        found = self._rates.get((price_class, price))
        if found is None:
            found = self._rates[price_class, price] = _rate(price_class, price)
        return found


def _rate(price_class: PriceClass, price: Price) -> _Rate:
    shares = weights(price_class, price)
    units = (
        shares.gpu / (max(1, price_class.gpu) * HOUR),
        shares.cpu / (max(1, price_class.cpu_milli) * HOUR),
        shares.memory / (max(1, price_class.memory_mib) * HOUR),
    )
    divisor = lcm(*(each.denominator for each in units))
    gpu, cpu, memory = (int(each * divisor) for each in units)
    listed = price.node_hour if price.list_node_hour is None else price.list_node_hour
    return _Rate(gpu, cpu, memory, divisor, price.node_hour, listed)


class _Added:
    """The sums of one owner. `costs`: by divisor, so that fractions are added once at the end."""

    __slots__ = ("costs", "numbers", "unpriced")

    def __init__(self) -> None:
        self.numbers = [0] * 8
        self.unpriced = 0
        self.costs: dict[int, list[int]] = {}

    def add(self, each: UsageSum, rate: _Rate | None) -> None:
        """In place: there may be a hundred thousand sums."""
        of, numbers = each.integral, self.numbers
        numbers[0] += of.gpu
        numbers[1] += of.gpu_memory
        numbers[2] += of.cpu
        numbers[3] += of.memory
        numbers[4] += of.busy
        numbers[5] += of.idle
        numbers[6] += of.unknown
        numbers[7] += each.pods
        if rate is None:
            self.unpriced += of.gpu
            return
        share = rate.gpu * of.gpu + rate.cpu * of.cpu + rate.memory * of.memory
        costs = self.costs.get(rate.divisor)
        if costs is None:
            costs = self.costs[rate.divisor] = [0, 0]
        costs[0] += share * rate.node_hour
        costs[1] += share * rate.list_node_hour

    @property
    def total(self) -> Total:
        charged: Charge | None = None
        for divisor, (cost, listed) in self.costs.items():
            more = Charge(Fraction(cost, divisor), Fraction(listed, divisor))
            charged = more if charged is None else charged + more
        return Total(UsageIntegral(*self.numbers[:7]), self.numbers[7], charged, self.unpriced)


class GpuSplit(Struct, frozen=True):
    """GPUs times milliseconds, by what they were; the parts add up to all GPUs of the time."""

    used: Fraction = NOTHING
    idle: Fraction = NOTHING
    unknown: Fraction = NOTHING
    free: Fraction = NOTHING
    stranded: Fraction = NOTHING
    broken: Fraction = NOTHING

    @property
    def parts(self) -> tuple[Fraction, ...]:
        return tuple(getattr(self, name) for name in _PARTS)

    def __add__(self, other: GpuSplit) -> GpuSplit:
        return GpuSplit(*(a + b for a, b in zip(self.parts, other.parts, strict=True)))


def gpu_split(sums: NodeSum) -> GpuSplit:
    """Of all GPUs that the nodes of this sum had in its time.

    The time without rows of hours is unknown. An hour counts where it begins, so that rows may
    cover more than the time; all parts are then reduced to it alike.
    """
    whole = Fraction(sums.node_ms * sums.price_class.gpu)
    given = GpuSplit(*(Fraction(getattr(sums, name)) for name in _PARTS))
    covered = sum(given.parts, NOTHING)
    if covered > whole:
        return GpuSplit(*(each * whole / covered for each in given.parts))
    return given + GpuSplit(unknown=whole - covered)


class NodeTotal(Struct, frozen=True):
    """Nodes of one kind in a time. `split`: their GPUs; `money`: the GPU money by the same parts,
    `charge`: of the whole nodes; None = no part of the time has a price. `unpriced_ms`:
    milliseconds of nodes without a price.
    """

    node_ms: int = 0
    split: GpuSplit = GpuSplit()
    money: GpuSplit | None = None
    charge: Charge | None = None
    unpriced_ms: int = 0


def node_totals(sums: Iterable[tuple[Key, NodeSum]], book: PriceBook) -> dict[Key, NodeTotal]:
    """By key, in the order of first appearance. Each sum has one price, that of its beginning."""
    parts: dict[tuple[Key, PriceClass, Price | None], list[int]] = {}
    for key, each in sums:
        place = key, each.price_class, book.at(each.price_class, each.day)
        numbers = (each.node_ms, *(getattr(each, name) for name in _PARTS))
        found = parts.get(place)
        parts[place] = list(numbers) if found is None else list(map(add, found, numbers))
    totals: dict[Key, NodeTotal] = {}
    for (key, price_class, price), found in parts.items():
        each = NodeSum(0, price_class, *found)
        totals[key] = _with_node(totals.get(key, NodeTotal()), each, price)
    return totals


def _with_node(total: NodeTotal, each: NodeSum, price: Price | None) -> NodeTotal:
    split = gpu_split(each)
    node_ms, whole = total.node_ms + each.node_ms, total.split + split
    if price is None:
        unpriced = total.unpriced_ms + each.node_ms
        return NodeTotal(node_ms, whole, total.money, total.charge, unpriced)
    money, charged = total.money or GpuSplit(), total.charge or Charge()
    if each.price_class.gpu:
        rate = weights(each.price_class, price).gpu * price.node_hour
        rate /= HOUR * each.price_class.gpu
        money += GpuSplit(*(part * rate for part in split.parts))
    charged += charge(each.node_ms, price)
    return NodeTotal(node_ms, whole, money, charged, total.unpriced_ms)
