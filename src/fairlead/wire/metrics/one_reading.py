"""Merges the readings of several pages into one per card, identified by its uuid.

A page with Fairlead's own families (`fairlead_gpu_*`) has priority, then the page that was read
last. A card on two pages is no fault of the cluster, but it is reported as a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.devices.gpu import GpuReading
from fairlead.model.metric import Sample

_MARKERS: Final = {"fairlead_gpu_up": "uuid", "DCGM_FI_DEV_GPU_UTIL": "UUID"}
"""For each family a metric that every page with the family has, and the label with the card's uuid.
"""


class PageCards(Struct, frozen=True):
    """The cards of one page. `native`: uuids of the cards with Fairlead's own families.

    `is_kept`: the page is no longer read, and its cards count for a while; that is no conflict.
    """

    page: str
    readings: Sequence[GpuReading]
    native: frozenset[str] = frozenset()
    is_kept: bool = False


class DuplicateCard(Struct, frozen=True, gc=False):
    """A card and the pages that have it: those with Fairlead's own families first, then by name.

    Which of two pages with the same family counts can change with every scrape.
    """

    uuid: str
    pages: tuple[str, ...]


class Clashes(Struct, frozen=True):
    """Cards that several pages have: their number, the first by uuid, and for each page the number
    of its readings that do not count because of that.
    """

    count: int = 0
    first: DuplicateCard | None = None
    left_out: Mapping[str, int] = {}

    @property
    def sentence(self) -> str:
        """One sentence for all of them; "" = there are none.

        >>> Clashes(2, DuplicateCard("GPU-1", ("a", "b"))).sentence
        'GPU `GPU-1` is reported by `a` and by `b` (1 GPU more is reported twice); each counts once'
        """
        if self.first is None:
            return ""
        rest, pages = self.count - 1, self.first.pages
        more = (
            f" ({rest} GPU{'s'[: rest > 1]} more {'are' if rest > 1 else 'is'} reported twice)"
            if rest
            else ""
        )
        others = f", and by {len(pages) - 2} more" if len(pages) > 2 else ""
        return (
            f"GPU `{self.first.uuid}` is reported by `{pages[0]}` and by "
            f"`{pages[1]}`{others}{more}; each counts once"
        )


class CountedCards(Struct, frozen=True):
    """The reading of each card, and the cards that several pages have."""

    readings: tuple[GpuReading, ...] = ()
    clashes: Clashes = Clashes()


def one_per_card(pages: Iterable[PageCards]) -> CountedCards:
    """Readings with Fairlead's own families first, then the newest.

    At equal times the first page by name.

    >>> own = PageCards("b", [GpuReading("n1", 0, "GPU-1", read_at=1.0)], frozenset(["GPU-1"]))
    >>> theirs = PageCards("a", [GpuReading("n1.example", 0, "GPU-1", read_at=9.0)])
    >>> counted = one_per_card([theirs, own])
    >>> [(each.node, each.uuid) for each in counted.readings], counted.clashes.first
    ([('n1', 'GPU-1')], DuplicateCard(uuid='GPU-1', pages=('b', 'a')))
    """
    counted: dict[str, GpuReading] = {}
    first: dict[str, PageCards] = {}
    clashing: set[str] = set()
    left_out: Counter[str] = Counter()
    ordered = sorted(pages, key=lambda page: page.is_kept)
    for page in ordered:
        for reading in page.readings:
            uuid = reading.uuid
            other = first.get(uuid)
            if other is None:
                counted[uuid], first[uuid] = reading, page
                continue
            is_first = _rank(page, reading) < _rank(other, counted[uuid])
            if not page.is_kept and not other.is_kept:
                clashing.add(uuid)
                left_out[(other if is_first else page).page] += 1
            if is_first:
                counted[uuid], first[uuid] = reading, page
    return CountedCards(
        tuple(counted.values()),
        Clashes(len(clashing), _pages_of(min(clashing, default=None), ordered), left_out),
    )


def _rank(page: PageCards, reading: GpuReading) -> tuple[bool, float, str]:
    return reading.uuid not in page.native, -reading.read_at, page.page


def _pages_of(uuid: str | None, pages: Iterable[PageCards]) -> DuplicateCard | None:
    """The pages that have the card; searched only for the one card that the sentence names."""
    if uuid is None:
        return None
    having = (
        page
        for page in pages
        if not page.is_kept and any(each.uuid == uuid for each in page.readings)
    )
    return DuplicateCard(
        uuid,
        tuple(page for _, page in sorted((uuid not in page.native, page.page) for page in having)),
    )


def twice_scraped(samples: Iterable[Sample]) -> Clashes:
    """Cards that Prometheus has from several targets, distinguished by the label `instance`."""
    seen: dict[str, dict[str, bool]] = {}
    for sample in samples:
        label = _MARKERS.get(sample.name)
        if label is not None and not sample.labels.get("GPU_I_ID"):
            targets = seen.setdefault(sample.labels.get(label, ""), {})
            target = sample.labels.get("instance", "")
            targets[target] = targets.get(target, False) or label == "uuid"
    twice = sorted(uuid for uuid, targets in seen.items() if len(targets) > 1)
    if not twice:
        return Clashes()
    ordered = {
        uuid: sorted(seen[uuid], key=lambda each: (not seen[uuid][each], each)) for uuid in twice
    }
    left_out = Counter(target for targets in ordered.values() for target in targets[1:])
    return Clashes(len(twice), DuplicateCard(twice[0], tuple(ordered[twice[0]])), left_out)
