"""Hundreds of exporter pages that hang, come, go and come back, on a clock that jumps: pages that
answer are still read at their interval.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import aiohttp
import pytest
from hypothesis.strategies import integers
from tests.examples import examples
from tests.jumping_loop import JumpingLoop

from fairlead.edge.prometheus import exporter_pages
from fairlead.edge.prometheus.exporter_pages import ExporterPages
from fairlead.edge.prometheus.followed_page import PATIENCE_SECONDS, SHORTEST_PATIENCE_SECONDS
from fairlead.edge.prometheus.page_fetch import TIMEOUT_SECONDS, ExporterFailure
from fairlead.model.metric import Sample
from fairlead.model.source import Source
from fairlead.wire.metrics.gpu_readings import CardsOfPage

BEAT = 5.0
AT_ONCE, SILENT_AT_ONCE = 8, 24
"""An eighth of the usual values, so that hundreds of pages behave like thousands."""
PUBLISHED_WITHIN = 1.5


class Exporters:
    """Pages of one card each, found and read on the clock of `loop`. `hangs`: the names of pages
    that do not answer.
    """

    def __init__(self, loop: JumpingLoop, seed: int = 0) -> None:
        self.loop = loop
        self.rng = random.Random(seed)
        self.found: Mapping[str, str] = {}
        self.hangs: set[str] = set()
        self.seconds: Mapping[str, float] = {}
        self.open = self.most_open = 0
        self.busy: dict[str, float] = defaultdict(float)

    def now(self) -> float:
        return self.loop.time()

    async def run(self) -> None:
        await asyncio.sleep(1e9)

    def pages(self) -> Mapping[str, str]:
        return self.found

    def source(self) -> Source:
        return Source("gpus")

    async def fetch(
        self,
        session: aiohttp.ClientSession,
        url: str,
        node: str,
        *,
        login: str = "",
        keeps_open: bool = True,
    ) -> CardsOfPage:
        began = self.now()
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            if url in self.hangs:
                await asyncio.sleep(TIMEOUT_SECONDS)
                raise ExporterFailure(f"`{url}` did not answer in time")
            await asyncio.sleep(self.seconds.get(url, self.rng.uniform(0.001, 0.05)))
        finally:
            self.open -= 1
            self.busy[url] += self.now() - began
        cards = CardsOfPage(node)
        cards.note(
            [
                Sample(
                    "fairlead_gpu_up",
                    {"node_name": node, "gpu": "0", "uuid": f"GPU-{url}", "model": "T4"},
                    1.0,
                )
            ]
        )
        return cards

    def reader(self) -> ExporterPages:
        return ExporterPages(
            [],
            self,
            interval_seconds=BEAT,
            finder=self,
            wall=self.now,
            rng=self.rng,
            fetch=self.fetch,
            stale_after_seconds=1e9,
        )


@pytest.fixture(autouse=True, scope="module")
def _few_places() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporter_pages, "AT_ONCE", AT_ONCE)
        patch.setattr(exporter_pages, "SILENT_AT_ONCE", SILENT_AT_ONCE)
        yield


def url(name: object) -> str:
    return f"http://{name}:9400/metrics"


def lived(
    seconds: float, exporters: Exporters, pages: ExporterPages, each_second: Callable[[float], None]
) -> None:
    async def life() -> None:
        reading = asyncio.create_task(pages.run())
        while exporters.now() < seconds:
            await asyncio.sleep(1)
            assert not reading.done(), reading.exception()
            each_second(exporters.now())
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading

    try:
        exporters.loop.run_until_complete(life())
    finally:
        exporters.loop.close()


@examples(2, 30, integers(0, 2**32))
def test_the_age_of_sound_pages_does_not_depend_on_hundreds_that_hang(seed: int) -> None:
    exporters = Exporters(JumpingLoop(), seed)
    rng = random.Random(seed)
    sound = [url(f"s{number}") for number in range(rng.randint(1, 40))]
    others = [url(f"h{number}") for number in range(rng.randint(200, 400))]
    everybody = sound + others
    rng.shuffle(everybody)
    exporters.found = dict.fromkeys(everybody, "n")
    exporters.hangs = set(rng.sample(others, len(others) * 3 // 4))
    pages = exporters.reader()
    first_within = 2 + PATIENCE_SECONDS * len(everybody) / AT_ONCE
    newly_silent = 60
    within = BEAT + PUBLISHED_WITHIN + SHORTEST_PATIENCE_SECONDS * newly_silent / AT_ONCE

    def look(now: float) -> None:
        if now % (2 * BEAT) < 1:
            some = set(rng.sample(others, newly_silent))
            exporters.hangs = rng.choice(
                [exporters.hangs | some, exporters.hangs - some, exporters.hangs ^ some]
            )
        if rng.random() < 0.3:
            gone = set(rng.sample(others, rng.randint(0, len(others) // 2)))
            exporters.found = {each: "n" for each in everybody if each not in gone}
        read = {each.uuid.removeprefix("GPU-"): each.read_at for each in pages.latest()}
        if now > first_within:
            assert max(now - read[each] for each in sound) <= within, (seed, now)
        assert exporters.most_open <= 2 * (AT_ONCE + SILENT_AT_ONCE)

    lived(60.0, exporters, pages, look)


def test_pages_that_come_and_go_while_they_are_read_cost_others_nothing() -> None:
    """A thousand pages come and go while they are being read; a page that stays is read at its
    interval.
    """
    exporters = Exporters(JumpingLoop())
    pages = exporters.reader()
    ages = []

    def look(now: float) -> None:
        exporters.hangs = {url(f"{now}-{number}") for number in range(30)}
        exporters.found = dict.fromkeys([url("sound"), *exporters.hangs], "n")
        if now > 5:
            ages.append(
                now
                - next(
                    each.read_at for each in pages.latest() if each.uuid == f"GPU-{url('sound')}"
                )
            )

    lived(60.0, exporters, pages, look)
    assert max(ages) <= BEAT + PUBLISHED_WITHIN


def test_an_address_that_is_on_another_node_now_has_that_nodes_name() -> None:
    exporters = Exporters(JumpingLoop())
    pages = exporters.reader()
    named = []

    def look(now: float) -> None:
        exporters.found = {url("10.0.0.5"): "a" if now < 20 else "b"}
        named.append([each.node for each in pages.latest()])

    lived(40.0, exporters, pages, look)
    assert (named[15], named[-1]) == (["a"], ["b"])
    assert pages.source().message == ""


def test_a_page_slower_than_its_beat_has_half_a_beat_of_rest() -> None:
    exporters = Exporters(JumpingLoop())
    exporters.found = {url("slow"): "n"}
    exporters.seconds = {url("slow"): 7.0}
    pages = exporters.reader()
    lived(300.0, exporters, pages, lambda _: None)
    assert pages.tally().reads == 30, "one in two beats"
    assert round(exporters.busy[url("slow")]) == 210
