"""Which price a node of a class has at a time, and which new prices are refused.

Specification: docs/spec/usage.md#prices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from fairlead.model.refusal import Refusal
from fairlead.model.usage.ledger import PriceClass
from fairlead.model.usage.prices import MATCHED_NODE_LABELS, MODEL_LABEL, Price
from fairlead.rules.usage.days import day_start_fault
from fairlead.rules.usage.money import render_money

MATCHED_LABELS: Final = (*MATCHED_NODE_LABELS, MODEL_LABEL)
"""What a matcher may name."""
MONEY_MAX: Final = 1_000_000_000_000
"""Micro-units: a million per node-hour."""
PERMILLE: Final = 1000
NOTE_MAX: Final = 200
_VALUE_MAX: Final = 191
_CURRENCY_LENGTH: Final = 3
_SHOWN: Final = 10

Matcher = tuple[tuple[str, str], ...]


def class_labels(price_class: PriceClass) -> dict[str, str]:
    """What a matcher is compared with, sorted."""
    labels = dict(price_class.labels)
    if price_class.model:
        labels[MODEL_LABEL] = price_class.model
    return dict(sorted(labels.items()))


def matches(matcher: Matcher, price_class: PriceClass) -> bool:
    """
    >>> matches((("gpu-model", "A100"),), PriceClass(model="A100")), matches((), PriceClass())
    (True, True)
    """
    labels = class_labels(price_class)
    return all(labels.get(key) == value for key, value in matcher)


class PriceSpan(Struct, frozen=True):
    """From `start` on, until the next span. `price`: None = there is none."""

    start: int
    price: Price | None


class PriceBook(Struct, frozen=True, dict=True):
    """Prices as they were known at `as_of` (milliseconds; None = all of them)."""

    prices: tuple[Price, ...]
    as_of: int | None = None

    @cached_property
    def known(self) -> tuple[Price, ...]:
        return tuple(
            each for each in self.prices if self.as_of is None or each.entered_at <= self.as_of
        )

    @cached_property
    def currency(self) -> str:
        """ "" = there are no prices."""
        return next((each.currency for each in self.known if each.currency), "")

    @cached_property
    def _spans(self) -> dict[PriceClass, tuple[PriceSpan, ...]]:
        return {}

    def at(self, price_class: PriceClass, when: int) -> Price | None:
        """The price of a class at a time; None = it has none."""
        found = None
        for span in self.spans(price_class):
            if span.start > when:
                break
            found = span.price
        return found

    def spans(self, price_class: PriceClass) -> tuple[PriceSpan, ...]:
        """The prices of a class in the order of time; before the first there is none."""
        found = self._spans.get(price_class)
        if found is None:
            fitting = [each for each in self.known if matches(each.matcher, price_class)]
            starts = sorted({each.valid_from for each in fitting})
            found = tuple(PriceSpan(start, _in_force(fitting, start)) for start in starts)
            self._spans[price_class] = found
        return found


def _in_force(fitting: Iterable[Price], when: int) -> Price | None:
    """The most labels win; of one matcher the latest beginning, then the latest entry.

    Two matchers of the same number of labels are refused when the second is entered; a class that
    appears later may match both, and then the first in the order of their texts counts.
    """
    newest: dict[Matcher, Price] = {}
    for each in fitting:
        before = newest.get(each.matcher)
        if each.valid_from <= when and (before is None or _age(each) > _age(before)):
            newest[each.matcher] = each
    alive = [each for each in newest.values() if not each.ended]
    return min(alive, key=lambda each: (-len(each.matcher), each.matcher), default=None)


def _age(price: Price) -> tuple[int, int, int]:
    return price.valid_from, price.entered_at, price.id


class PriceFault(Struct, frozen=True):
    """Why a price is refused: the field of the order, and a sentence with a hint."""

    field: str
    rule: str
    why: Refusal


def price_faults(
    new: Price,
    prices: Sequence[Price],
    classes: Collection[PriceClass],
    zone: ZoneInfo,
    written: Mapping[str, str] = MappingProxyType({}),
) -> list[PriceFault]:
    """All that is wrong with a new price; empty = it may be stored.

    `classes`: of the nodes of the last 90 days. `zone`: of billing days. `written`: the amounts as
    they were entered, by field.
    """
    faults = [*_matcher_faults(new), *_money_faults(new, written)]
    if hint := day_start_fault(new.valid_from, zone):
        why = Refusal("a price begins at the beginning of a billing day", hint)
        faults.append(PriceFault("validFrom", "day-start", why))
    if new.ended:
        return [*faults, *_end_faults(new, prices)]
    return [*faults, *_currency_faults(new, prices), *_overlap_faults(new, prices, classes)]


def matches_nothing(new: Price, classes: Collection[PriceClass]) -> Refusal | None:
    """A warning: no node of these classes has the labels."""
    if any(matches(new.matcher, each) for each in classes):
        return None
    if not classes:
        return Refusal(
            "the ledger has no node of the last 90 days",
            "look whether the usage recorder runs; the price counts when a node matches",
        )
    known = sorted({matcher_text(class_labels(each).items()) for each in classes})
    return Refusal(
        f"no node of the last 90 days has `{matcher_text(new.matcher)}`",
        f"the labels of nodes: {'; '.join(known[:_SHOWN])}",
    )


def matcher_text(matcher: Iterable[tuple[str, str]]) -> str:
    """
    >>> matcher_text((("gpu-model", "A100"),)), matcher_text(())
    ('gpu-model=A100', 'every node')
    """
    return ",".join(f"{key}={value}" for key, value in matcher) or "every node"


def _matcher_faults(new: Price) -> Iterator[PriceFault]:
    for key, value in new.matcher:
        if key not in MATCHED_LABELS:
            why = Refusal(
                f"a price cannot match the label `{key[:100]}`",
                f"match {', '.join(MATCHED_LABELS)}",
            )
            yield PriceFault("matcher", "label", why)
        elif not value or len(value) > _VALUE_MAX:
            hint = f"give 1 to {_VALUE_MAX} characters, or leave the label out"
            why = Refusal(f"the value of `{key}` has {len(value)} characters", hint)
            yield PriceFault("matcher", "value", why)


def _money_faults(new: Price, written: Mapping[str, str]) -> Iterator[PriceFault]:
    for field, amount in (("nodeHour", new.node_hour), ("listNodeHour", new.list_node_hour)):
        if amount is None or 0 <= amount <= MONEY_MAX:
            continue
        what = "negative" if amount < 0 else "more than a million"
        why = Refusal(
            f"the price {written.get(field) or render_money(amount)} is {what}",
            "give a price per node-hour from 0 to 1000000",
        )
        yield PriceFault(field, "amount", why)
    if new.gpu_permille is not None and not 0 <= new.gpu_permille <= PERMILLE:
        why = Refusal(
            f"the GPU share is {new.gpu_permille / 10:g} %", "give a percentage from 0 to 100"
        )
        yield PriceFault("gpuSharePercent", "share", why)
    if len(new.note) > NOTE_MAX:
        why = Refusal(f"the note has {len(new.note)} characters", f"give at most {NOTE_MAX}")
        yield PriceFault("note", "length", why)


def _end_faults(new: Price, prices: Sequence[Price]) -> Iterator[PriceFault]:
    if any(each.matcher == new.matcher for each in prices):
        return
    known = "; ".join(sorted({matcher_text(each.matcher) for each in prices})[:_SHOWN])
    why = Refusal(
        f"there is no price of `{matcher_text(new.matcher)}` to end",
        f"the matchers with prices: {known}" if known else "there are no prices",
    )
    yield PriceFault("matcher", "no-price", why)


def _currency_faults(new: Price, prices: Sequence[Price]) -> Iterator[PriceFault]:
    if not (len(new.currency) == _CURRENCY_LENGTH and new.currency.isascii()) or not (
        new.currency.isalpha() and new.currency.isupper()
    ):
        why = Refusal(
            f"`{new.currency[:40]}` is no currency", "give a code of ISO 4217, such as EUR or CNY"
        )
        yield PriceFault("currency", "code", why)
        return
    known = next((each.currency for each in prices if each.currency), new.currency)
    if known != new.currency:
        why = Refusal(
            f"the prices are in {known}, and this one is in {new.currency}",
            f"convert it to {known}: sums have one currency",
        )
        yield PriceFault("currency", "one-currency", why)


def _overlap_faults(
    new: Price, prices: Sequence[Price], classes: Collection[PriceClass]
) -> Iterator[PriceFault]:
    """Of the other matchers with as many labels, those that have a price after the new one begins,
    and that match the same class.
    """
    others = {each.matcher for each in prices if each.matcher != new.matcher}
    for other in sorted(each for each in others if len(each) == len(new.matcher)):
        if _ends_before(other, prices, new.valid_from):
            continue
        both = next((e for e in classes if matches(other, e) and matches(new.matcher, e)), None)
        if both is not None:
            why = Refusal(
                f"`{matcher_text(new.matcher)}` and `{matcher_text(other)}` both match nodes with "
                f"`{matcher_text(class_labels(both).items())}`",
                "add a label to one of them, or end the prices of the other",
            )
            yield PriceFault("matcher", "overlap", why)


def _ends_before(matcher: Matcher, prices: Sequence[Price], when: int) -> bool:
    """Whether the matcher has no price at this time, and none later."""
    own = [each for each in prices if each.matcher == matcher]
    newest = max((e for e in own if e.valid_from <= when), key=_age, default=None)
    later = any(each.valid_from > when and not each.ended for each in own)
    return not later and (newest is None or newest.ended)


def parse_matcher(labels: Mapping[str, str]) -> Matcher:
    return tuple(sorted(labels.items()))
