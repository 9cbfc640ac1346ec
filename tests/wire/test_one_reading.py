"""A card counts once, however many pages contain it, and pages that contain a card
twice are named.
"""

from __future__ import annotations

from fairlead.model.devices.gpu import GpuReading
from fairlead.model.metric import Sample
from fairlead.wire.metrics.one_reading import (
    Clashes,
    DuplicateCard,
    PageCards,
    one_per_card,
    twice_scraped,
)


def reported(
    page: str, at: float, *uuids: str, native: bool = False, is_kept: bool = False
) -> PageCards:
    readings = [GpuReading(page, index, uuid, read_at=at) for index, uuid in enumerate(uuids)]
    return PageCards(page, readings, frozenset(uuids) if native else frozenset(), is_kept)


def test_our_family_comes_before_a_newer_page_of_another() -> None:
    counted = one_per_card(
        [reported("dcgm", 9.0, "GPU-a"), reported("ours", 1.0, "GPU-a", native=True)]
    )
    assert [each.node for each in counted.readings] == ["ours"]
    assert counted.clashes == Clashes(1, DuplicateCard("GPU-a", ("ours", "dcgm")), {"dcgm": 1})


def test_of_two_pages_of_one_family_the_newest_counts() -> None:
    pages = [reported("service", 5.0, "GPU-a"), reported("pod", 6.0, "GPU-a")]
    assert [each.node for each in one_per_card(pages).readings] == ["pod"]


def test_the_order_of_pages_changes_nothing() -> None:
    pages = [
        reported("b", 5.0, "GPU-a", "GPU-b"),
        reported("a", 5.0, "GPU-b", "GPU-c"),
        reported("c", 4.0, "GPU-a", native=True),
    ]
    forwards, backwards = one_per_card(pages), one_per_card(reversed(pages))
    assert (
        forwards.clashes
        == backwards.clashes
        == Clashes(2, DuplicateCard("GPU-a", ("c", "b")), {"b": 2})
    )
    assert {each.uuid: each.node for each in forwards.readings} == {
        "GPU-a": "c",
        "GPU-b": "a",
        "GPU-c": "a",
    }
    assert set(forwards.readings) == set(backwards.readings)


def test_pages_with_the_same_card_are_named_in_one_order_whichever_was_last() -> None:
    before, after = (
        [reported("a", 1.0, "GPU-a"), reported("b", 2.0, "GPU-a")],
        [reported("a", 3.0, "GPU-a"), reported("b", 2.0, "GPU-a")],
    )
    assert (
        one_per_card(before).clashes.first
        == one_per_card(after).clashes.first
        == DuplicateCard("GPU-a", ("a", "b"))
    )
    of_four = Clashes(1, DuplicateCard("GPU-a", ("a", "b", "c", "d"))).sentence
    assert of_four == "GPU `GPU-a` is reported by `a` and by `b`, and by 2 more; each counts once"


def test_a_page_that_is_gone_is_no_clash() -> None:
    counted = one_per_card(
        [
            reported("old pod", 5.0, "GPU-a", native=True, is_kept=True),
            reported("new pod", 6.0, "GPU-a", native=True),
        ]
    )
    assert ([each.node for each in counted.readings], counted.clashes) == (["new pod"], Clashes())


def test_a_prometheus_that_scrapes_a_card_twice_is_seen() -> None:
    own = Sample("fairlead_gpu_up", {"uuid": "GPU-a", "instance": "n1:9400"}, 1.0)
    same = Sample("DCGM_FI_DEV_GPU_UTIL", {"UUID": "GPU-a", "instance": "n1:9400"}, 1.0)
    theirs = Sample("DCGM_FI_DEV_GPU_UTIL", {"UUID": "GPU-a", "instance": "a1:9401"}, 1.0)
    assert twice_scraped([own, same]) == Clashes()
    assert twice_scraped([theirs, own, same]) == Clashes(
        1, DuplicateCard("GPU-a", ("n1:9400", "a1:9401")), {"a1:9401": 1}
    )


def test_the_sentence_names_pages_and_card() -> None:
    assert Clashes().sentence == ""
    assert Clashes(1, DuplicateCard("GPU-a", ("a", "b"))).sentence == (
        "GPU `GPU-a` is reported by `a` and by `b`; each counts once"
    )
