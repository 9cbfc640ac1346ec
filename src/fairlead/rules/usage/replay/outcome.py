"""What a replay shows: hours of waiting, evictions and idle money of each leaf, and how far it is
from what happened.

Specification: docs/spec/usage.md#replay.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

from msgspec import Struct

from fairlead.model.resources import NVIDIA_GPU
from fairlead.model.usage.ledger import GPU, PriceClass
from fairlead.rules.usage.replay.history import PastPod, ReplayInput
from fairlead.rules.usage.replay.simulation import HeldSum, Replay, ReplayedPod, leaves_of, tree_at

TOLERANCE_SECONDS: Final = 60.0
"""An admission of the replay that is no further from the one that happened counts as the same."""
GpuRate = Callable[[PriceClass, int], Fraction | None]
"""Micro-units for one millionth of a GPU × ms on a node of a class, at a time (ms); None: no price.
"""


class LeafOutcome(Struct, frozen=True):
    """`leaf`: full name, "" = the sum of all. Times are seconds, `gpu`, `idle` and `lost` GPUs
    (millionths) × milliseconds, `idle_cost` micro-units (None: there is no price).

    `pods`: places of workloads. `waited_mean`, `waited_p95`: of the pods, `waited` of all together.
    `waiting`: how many wait at the end. `idle`: held, and not used. `lost`: what evicted pods had
    held, and held again.
    """

    leaf: str
    pods: int = 0
    waited: float = 0.0
    waited_mean: float = 0.0
    waited_p95: float = 0.0
    waiting: int = 0
    evictions: int = 0
    gpu: int = 0
    idle: int = 0
    lost: int = 0
    idle_cost: Fraction | None = None


class Difference(Struct, frozen=True, order=True):
    """Why admissions differ, how many, and one of them. `cause`: a word of
    docs/spec/usage.md#replay.
    """

    cause: str
    pods: int
    example: str


class Fidelity(Struct, frozen=True):
    """How far the replay with the trees in force is from what happened. Times are seconds.

    `happened`, `replayed`: admissions in the time. `within`: those that differ by at most
    `tolerance`. `out_of_order`: the fewest pods without which the order of admissions is the same;
    pods whose times differ by at most the tolerance have no order. `worst`: `worst_pod`'s.
    """

    happened: int
    replayed: int
    both: int
    within: int
    out_of_order: int
    median: float
    worst: float
    worst_pod: str
    tolerance: float
    differences: tuple[Difference, ...] = ()


class _Sum(Struct):
    """A leaf in the making."""

    waits: list[float]
    waiting: int = 0
    evictions: int = 0
    gpu: int = 0
    idle: int = 0
    lost: int = 0
    cost: Fraction = Fraction(0)


def replay_outcome(
    replay: Replay, rate: GpuRate | None = None, cuts: Sequence[float] = ()
) -> tuple[LeafOutcome, ...]:
    """Of a replay that has come to its end. `cuts`: those that the replay was made with."""
    sums: defaultdict[str, _Sum] = defaultdict(lambda: _Sum([]))
    for place in replay.places:
        if place.leaf:
            mine = sums[place.leaf]
            mine.waits.append(place.waited)
            mine.waiting += place.is_waiting
            mine.evictions += place.evictions
            mine.lost += place.lost
    history = replay.history
    starts = [history.start, *sorted(cuts)]
    for held in replay.held():
        if not held.leaf:
            continue
        mine = sums[held.leaf]
        mine.gpu += held.gpu
        mine.idle += held.idle
        price = _rate(rate, history.classes.get(held.node), starts[held.part])
        mine.cost += price * held.idle if price is not None else 0
    return _outcomes(sums, has_price=rate is not None)


def past_outcome(history: ReplayInput, rate: GpuRate | None = None) -> tuple[LeafOutcome, ...]:
    """Of what happened."""
    sums: defaultdict[str, _Sum] = defaultdict(lambda: _Sum([]))
    for past in history.pods:
        if not (leaf := past_leaf(history, past)):
            continue
        mine = sums[leaf]
        mine.waits.append(waited_in(past, history.start, history.end))
        mine.waiting += past.spells[-1][1] is None
        mine.evictions += past.replaced
        mine.gpu += past.held
        mine.idle += past.idle
        price = _rate(rate, history.classes.get(past.node), history.start)
        mine.cost += price * past.idle if price is not None else 0
    return _outcomes(sums, has_price=rate is not None)


class FreeGpus(Struct, frozen=True):
    """GPUs (millionths) × milliseconds that no pod held; `cost`: micro-units, None = no price."""

    gpu: int
    cost: Fraction | None


def free_gpus(
    history: ReplayInput,
    held: Iterable[HeldSum],
    rate: GpuRate | None = None,
    cuts: Sequence[float] = (),
) -> FreeGpus:
    """Of all nodes. `held`: by a replay, or by the past (`past_held`), in the parts of `cuts`."""
    bounds = [history.start, *sorted(cuts), history.end]
    left: defaultdict[tuple[str, int], int] = defaultdict(int)
    for span in history.nodes:
        name = span.room.name
        kind = history.classes.get(name)
        gpus = kind.gpu if kind is not None else span.room.allocatable.get(NVIDIA_GPU, 0) * GPU
        for part, (start, end) in enumerate(pairwise(bounds)):
            until = end if span.ended_at is None else min(end, span.ended_at)
            there = max(0.0, until - max(start, span.started_at))
            left[name, part] += gpus * round(there * 1000)
    for each in held:
        if (each.node, each.part) in left:
            left[each.node, each.part] -= each.gpu
    free, cost = 0, Fraction(0)
    for (name, part), gpu in left.items():
        free += max(0, gpu)
        price = _rate(rate, history.classes.get(name), bounds[part])
        cost += price * max(0, gpu) if price is not None else 0
    return FreeGpus(free, cost if rate is not None else None)


def past_held(history: ReplayInput) -> list[HeldSum]:
    """What the pods held in the past, all of it on their first node, as one part."""
    return [
        HeldSum(past_leaf(history, past), past.node, 0, past.held, past.idle)
        for past in history.pods
        if past.held
    ]


def past_leaf(history: ReplayInput, past: PastPod) -> str:
    """The leaf that the pod was in when it came, "" = none."""
    if not past.is_counted:
        return ""
    at = max(past.arrived_at, history.start)
    return leaves_of(tree_at(history.trees, at)).get(past.pod.namespace, "")


def waited_in(past: PastPod, start: float, end: float) -> float:
    """How long the pod waited in a time, in seconds.

    >>> from fairlead.model.quota.state import QuotaPod
    >>> past = PastPod(QuotaPod("a", "p"), 10.0, spells=((10.0, 30.0), (50.0, None)))
    >>> waited_in(past, 20.0, 60.0)
    20.0
    """
    return sum(
        max(0.0, min(end, end if until is None else until) - max(start, since))
        for since, until in past.spells
    )


def fidelity_of(replay: Replay, tolerance: float = TOLERANCE_SECONDS) -> Fidelity:
    """How far a replay with the trees in force is from what happened."""
    history = replay.history
    happened = replayed = 0
    both: list[tuple[float, float, ReplayedPod]] = []
    different: list[_Different] = []
    for place in replay.places:
        past, now = place.past, place.admitted_at
        if not place.leaf or (past.admitted_at is not None and past.admitted_at < history.start):
            continue
        was = past.admitted_at
        was = was if was is not None and was < history.end else None
        happened += was is not None
        replayed += now is not None
        if was is not None and now is not None:
            both.append((was, now, place))
        times = [each for each in (was, now) if each is not None]
        if len(times) == 1 or (times and abs(times[0] - times[1]) > tolerance):
            different.append(_Different(min(times), max((*times, past.arrived_at)), place))
    off = sorted(abs(now - was) for was, now, _ in both)
    worst = max(both, key=lambda each: (abs(each[1] - each[0]), each[2].past.pod.key), default=None)
    return Fidelity(
        happened,
        replayed,
        len(both),
        sum(1 for each in off if each <= tolerance),
        out_of_order((was, now if abs(now - was) > tolerance else was) for was, now, _ in both),
        off[len(off) // 2] if off else 0.0,
        off[-1] if off else 0.0,
        worst[2].past.pod.key if worst is not None and off[-1] > 0 else "",
        tolerance,
        _differences(history, different),
    )


class _Different(Struct):
    """A place whose admissions differ: they, or the only one, are between `first` and `last`."""

    first: float
    last: float
    place: ReplayedPod


def _differences(history: ReplayInput, different: Iterable[_Different]) -> tuple[Difference, ...]:
    """The causes, the most frequent first. Once an admission differs, those that need its room may
    differ, too, until it has ended.
    """
    keys: defaultdict[str, list[str]] = defaultdict(list)
    until = history.start
    for each in sorted(different, key=lambda each: (each.first, each.place.past.pod.key)):
        past = each.place.past
        cause = _own_cause(history, each)
        if not cause:
            cause = "consequence" if each.first <= until else "unknown"
        ended = past.ended_at if past.ended_at is not None else history.end
        until = max(until, each.last, ended)
        keys[cause].append(past.pod.key)
    found = [Difference(cause, len(its), its[0]) for cause, its in keys.items()]
    return tuple(sorted(found, key=lambda each: (-each.pods, each.cause)))


def _own_cause(history: ReplayInput, different: _Different) -> str:
    """The word for the first cause that the place has itself; "" = none."""
    place, first, last = different.place, different.first, different.last
    past = place.past
    if any(gap.started_at <= last * 1000 and first * 1000 <= gap.ended_at for gap in history.gaps):
        return "gap"
    if place.evictions or past.replaced:
        return "evicted"
    was, bound = past.admitted_at, past.bound_at
    return "scheduler" if was and bound and bound - was > TOLERANCE_SECONDS else ""


def out_of_order(pairs: Iterable[tuple[float, float]]) -> int:
    """The fewest pods without which both orders are the same. `pairs`: two times of each pod.

    >>> out_of_order([(1.0, 100.0), (200.0, 300.0), (400.0, 250.0)])
    1
    >>> out_of_order([(1.0, 1.0), (1.0, 1.0)])
    0
    """
    tails: list[float] = []
    count = 0
    for _, now in sorted(pairs):
        count += 1
        at = bisect_right(tails, now)
        if at == len(tails):
            tails.append(now)
        else:
            tails[at] = now
    return count - len(tails)


def _rate(rate: GpuRate | None, kind: PriceClass | None, at: float) -> Fraction | None:
    return rate(kind, round(at * 1000)) if rate is not None and kind is not None else None


def _outcomes(sums: Mapping[str, _Sum], *, has_price: bool) -> tuple[LeafOutcome, ...]:
    rows = [_outcome(leaf, sums[leaf], has_price=has_price) for leaf in sorted(sums)]
    whole = _Sum([])
    for each in sums.values():
        whole.waits += each.waits
        whole.waiting += each.waiting
        whole.evictions += each.evictions
        whole.gpu += each.gpu
        whole.idle += each.idle
        whole.lost += each.lost
        whole.cost += each.cost
    return (*rows, _outcome("", whole, has_price=has_price))


def _outcome(leaf: str, found: _Sum, *, has_price: bool) -> LeafOutcome:
    waits = sorted(found.waits)
    count = len(waits)
    return LeafOutcome(
        leaf,
        count,
        sum(waits),
        sum(waits) / count if count else 0.0,
        waits[min(count - 1, -(-95 * count // 100) - 1)] if count else 0.0,
        found.waiting,
        found.evictions,
        found.gpu,
        found.idle,
        found.lost,
        found.cost if has_price else None,
    )
