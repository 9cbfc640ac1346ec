"""What usage costs, reckoned step by step in exact fractions, from docs/spec/usage.md alone.

All times of a world are multiples of `STEP`, so that nothing changes within a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from fairlead.model.usage.ledger import NodeInterval, PodInterval, PriceClass
from fairlead.model.usage.prices import Price

STEP: Final = 300_000


def price_at(prices: Sequence[Price], price_class: PriceClass, at: int, as_of: int) -> Price | None:
    """At a time, the price of a class is that of the matchers with the most labels that match; of
    one matcher the latest `valid_from` that is not later than the time, and of those the latest
    `entered_at`. `ended` ends the prices of the same matcher.
    """
    labels = dict(price_class.labels) | (
        {"gpu-model": price_class.model} if price_class.model else {}
    )
    winners: list[Price] = []
    for matcher in {each.matcher for each in prices}:
        if not set(matcher) <= set(labels.items()):
            continue
        own = [
            each
            for each in prices
            if each.matcher == matcher and each.valid_from <= at and each.entered_at <= as_of
        ]
        if own:
            own.sort(key=lambda each: (each.valid_from, each.entered_at, each.id))
            if not own[-1].ended:
                winners.append(own[-1])
    return max(winners, key=lambda each: len(each.matcher)) if winners else None


def shares(price_class: PriceClass, price: Price) -> tuple[Fraction, Fraction, Fraction]:
    """w of the GPUs, (1 - w) × a of the CPU, (1 - w) × (1 - a) of the memory; a class without one
    of them gives its share to the other term.
    """
    has_gpu, has_cpu = price_class.gpu > 0, price_class.cpu_milli > 0
    has_memory = price_class.memory_mib > 0
    w = Fraction(9, 10) if price.gpu_permille is None else Fraction(price.gpu_permille, 1000)
    if not has_gpu:
        w = Fraction(0)
    elif not has_cpu and not has_memory:
        w = Fraction(1)
    a = Fraction(1, 2)
    if has_cpu != has_memory:
        a = Fraction(int(has_cpu))
    if not has_cpu and not has_memory:
        return w, Fraction(0), Fraction(0)
    return w, (1 - w) * a, (1 - w) * (1 - a)


class Reckoned(NamedTuple):
    """Micro-units. `pods`, `listed`: by uid; `nodes`, `gpus`: by node; `unpriced`: the GPU integral
    by uid.
    """

    pods: dict[str, Fraction]
    listed: dict[str, Fraction]
    nodes: dict[str, Fraction]
    gpus: dict[str, Fraction]
    unpriced: dict[str, int]


def reckon(
    nodes: Sequence[NodeInterval],
    pods: Sequence[PodInterval],
    prices: Sequence[Price],
    start: int,
    end: int,
    as_of: int = 1 << 62,
) -> Reckoned:
    found = Reckoned({}, {}, {}, {}, {})
    hours = Fraction(STEP, 3_600_000)
    for at in range(start, end, STEP):
        for node in nodes:
            if not node.started_at <= at < node.ended_at:
                continue
            price = price_at(prices, node.price_class, at, as_of)
            if price is not None:
                _add(found.nodes, node.node, price.node_hour * hours)
                share = shares(node.price_class, price)[0]
                _add(found.gpus, node.node, price.node_hour * hours * share)
        for pod in pods:
            if not pod.started_at <= at < pod.ended_at:
                continue
            price = price_at(prices, pod.price_class, at, as_of)
            if price is None:
                before = found.unpriced.get(pod.pod_uid, 0)
                found.unpriced[pod.pod_uid] = before + pod.amount.gpu * STEP
                continue
            part = held_share(pod, price)
            listed = price.node_hour if price.list_node_hour is None else price.list_node_hour
            _add(found.pods, pod.pod_uid, part * price.node_hour * hours)
            _add(found.listed, pod.pod_uid, part * listed * hours)
    return found


def held_share(pod: PodInterval, price: Price) -> Fraction:
    """Which part of its node's price a pod costs."""
    cls = pod.price_class
    w, cpu, memory = shares(cls, price)
    part = Fraction(0)
    if w:
        part += w * Fraction(pod.amount.gpu, cls.gpu)
    if cpu:
        part += cpu * Fraction(pod.amount.cpu_milli, cls.cpu_milli)
    if memory:
        part += memory * Fraction(pod.amount.memory_mib, cls.memory_mib)
    return part


def _add(into: dict[str, Fraction], key: str, more: Fraction) -> None:
    into[key] = into.get(key, Fraction(0)) + more


def total(amounts: Mapping[str, Fraction]) -> Fraction:
    return sum(amounts.values(), Fraction(0))
