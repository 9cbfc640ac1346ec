"""One reading per card, whoever speaks of it: a card is its uuid, and counts once.

The page with our own families (`fairlead_gpu_*`) comes first, then the one that was read last. A card that
two pages speak of is no fault of the cluster's, but somebody should know of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.devices.gpu import GpuReading
from fairlead.model.metric import Sample

_MARKERS: Final = {"fairlead_gpu_up": "uuid", "DCGM_FI_DEV_GPU_UTIL": "UUID"}
"""One metric of each family that every page of it has, and its label of the card."""


class ToldCards(Struct, frozen=True):
    """The cards of one page. `native`: uuids of those that our own families speak of.

    `is_kept`: nobody reads this page any more, and its cards count for a while; that is no clash.
    """

    page: str
    readings: Sequence[GpuReading]
    native: frozenset[str] = frozenset()
    is_kept: bool = False


class TwiceTold(Struct, frozen=True, gc=False):
    """A card and the pages that speak of it: those with our own families first, then by name.

    Which of two of one family counts changes with every beat.
    """

    uuid: str
    pages: tuple[str, ...]


class CountedCards(Struct, frozen=True):
    """Each card once, as the pages have them, and those that several pages speak of, by uuid."""

    readings: tuple[GpuReading, ...]
    twice: tuple[TwiceTold, ...]


def one_per_card(pages: Iterable[ToldCards]) -> CountedCards:
    """Our own families first, then the newest; of readings of one moment the first page's by name.

    >>> ours = ToldCards("b", [GpuReading("n1", 0, "GPU-1", read_at=1.0)], frozenset(["GPU-1"]))
    >>> theirs = ToldCards("a", [GpuReading("n1.example", 0, "GPU-1", read_at=9.0)])
    >>> counted = one_per_card([theirs, ours])
    >>> [(each.node, each.uuid) for each in counted.readings], counted.twice
    ([('n1', 'GPU-1')], (TwiceTold(uuid='GPU-1', pages=('b', 'a')),))
    """
    counted: dict[str, GpuReading] = {}
    first: dict[str, ToldCards] = {}
    several: dict[str, list[tuple[ToldCards, GpuReading]]] = {}
    for page in pages:
        for reading in page.readings:
            uuid = reading.uuid
            if uuid not in counted:
                counted[uuid], first[uuid] = reading, page
            else:
                several.setdefault(uuid, [(first[uuid], counted[uuid])]).append((page, reading))
    twice = []
    for uuid, told in sorted(several.items()):
        told.sort(key=lambda each: (uuid not in each[0].native, -each[1].read_at, each[0].page))
        counted[uuid] = told[0][1]
        names = sorted((uuid not in page.native, page.page) for page, _ in told if not page.is_kept)
        if len(names) > 1:
            twice.append(TwiceTold(uuid, tuple(name for _, name in names)))
    return CountedCards(tuple(counted.values()), tuple(twice))


def twice_scraped(samples: Iterable[Sample]) -> tuple[TwiceTold, ...]:
    """Cards that a Prometheus has from several of its targets, by the label `instance` it puts on series."""
    seen: dict[str, dict[str, bool]] = {}
    for sample in samples:
        label = _MARKERS.get(sample.name)
        if label is not None and not sample.labels.get("GPU_I_ID"):
            targets = seen.setdefault(sample.labels.get(label, ""), {})
            target = sample.labels.get("instance", "")
            targets[target] = targets.get(target, False) or label == "uuid"
    return tuple(
        TwiceTold(uuid, tuple(sorted(targets, key=lambda each: (not targets[each], each))))
        for uuid, targets in sorted(seen.items())
        if len(targets) > 1
    )


def clash_sentence(twice: Sequence[TwiceTold]) -> str:
    """One sentence for all of them, or "".

    >>> clash_sentence([TwiceTold("GPU-1", ("a", "b")), TwiceTold("GPU-2", ("a", "b"))])
    'GPU `GPU-1` is told by `a` and by `b` (1 GPU more is told twice); each counts once'
    """
    if not twice:
        return ""
    first, rest = twice[0], len(twice) - 1
    more = f" ({rest} GPU{'s'[: rest > 1]} more {'are' if rest > 1 else 'is'} told twice)" if rest else ""
    others = f", and by {len(first.pages) - 2} more" if len(first.pages) > 2 else ""
    return f"GPU `{first.uuid}` is told by `{first.pages[0]}` and by `{first.pages[1]}`{others}{more}; each counts once"
