"""The time slider of the Cluster page: it shows the cluster as it was, and leads back to now.

The cluster is simulated for some hours and looked at every ten minutes. What the page must show of
a moment comes from the snapshot that was taken then.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, expect
from tests.browser.accessibility import check_axe
from tests.browser.chromium import Window, window
from tests.browser.still_console import served
from tests.console.worlds import StillClock, still_world
from tests.usage.kept import StateKeeper
from tests.usage.memory_ledger import MemoryLedger

from fairlead.console.boards.restricted.board import SharedBoard
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.usage.ledger import LedgerBatch
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.snapshot import WorldReader, take_snapshot

pytestmark = pytest.mark.turns(2, 0)

LOOKS, LOOK_SECONDS, GAP_AFTER, GAP_SECONDS = 30, 600, 12, 3000


class Lived(NamedTuple):
    """`taken`: by milliseconds. `gap`: likewise, its start."""

    url: str
    taken: dict[int, ClusterSnapshot]
    gap: int


@pytest.fixture(scope="module")
def lived() -> Iterator[Lived]:
    taken: dict[int, ClusterSnapshot] = {}
    with ThreadPoolExecutor(1) as thread:  # this one has the loop of the browser
        ledger, gap = thread.submit(lambda: asyncio.run(_live(taken))).result()
    last = taken[max(taken)]
    world = replace(still_world(last), clock=StillClock(last.taken_at))
    with served(world, ledger=ledger) as url:
        yield Lived(url, taken, gap)


async def _live(taken: dict[int, ClusterSnapshot]) -> tuple[MemoryLedger, int]:
    ledger, gap = MemoryLedger(), 0
    begin = time.time() - LOOKS * LOOK_SECONDS - GAP_SECONDS - 60
    world = sharing_world(load_scenario("default"), 5, begin)
    world.warm_up()
    world.run_until(begin)
    reader, keeper = WorldReader(world.cluster), StateKeeper(ledger)
    for number in range(LOOKS):
        snapshot = take_snapshot(world, reader)
        at = round(snapshot.taken_at * 1000)
        await keeper.look(snapshot, at)
        taken[at] = snapshot
        if number == GAP_AFTER:
            gap = at + 1000
            await ledger.write_ledger(keeper.epoch, LedgerBatch(gap))
            world.run_until(world.clock.now() + GAP_SECONDS)
            await keeper.claim(round(world.clock.now() * 1000))
        world.run_until(world.clock.now() + LOOK_SECONDS)
    return ledger, gap


def _address(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def _allocated(tab: Window) -> str:
    return tab.at("panel-gpus-allocated-total").inner_text()


def test_a_moment_of_the_past_is_shown_with_its_holders_and_leads_back_to_now(
    browser: Browser, lived: Lived
) -> None:
    moments = sorted(lived.taken)
    at = moments[4]
    then = SharedBoard(lived.taken[at], at / 1000).overview
    now = SharedBoard(lived.taken[moments[-1]], moments[-1] / 1000).overview
    assert then.jobs != now.jobs, "the moments must differ"
    with window(browser, lived.url) as tab:
        tab.open(f"/overview?at={_address(at)}", "overview")
        expect(tab.at("past-banner")).to_contain_text("The cluster as it was at")
        for state, count in (("running", then.jobs.running), ("pending", then.jobs.pending)):
            expect(tab.at(f"jobs-{state}").locator("b")).to_have_text(str(count))
        tab.at("action-map-table").click()
        names = {pod.namespace for pod in lived.taken[at].pods if pod.is_holding}
        text = tab.at("panel-gpu-map").inner_text()
        assert any(name in text for name in names)
        expect(tab.at("panel-chart-gpus")).to_have_count(0)
        expect(tab.at("freshness")).to_have_count(0)
        check_axe(tab)
        tab.keep("past-overview")
        tab.at("action-now").click()
        expect(tab.at("past-banner")).to_have_count(0)
        expect(tab.at("jobs-running").locator("b")).to_have_text(str(now.jobs.running))
        assert "at=" not in tab.page.url


def test_keys_and_buttons_move_the_moment_and_play_goes_on(browser: Browser, lived: Lived) -> None:
    at = sorted(lived.taken)[2]
    with window(browser, lived.url) as tab:
        tab.open(f"/overview?at={_address(at)}&step=10m", "overview")
        first = tab.at("past-banner").inner_text()
        tab.at("past-slider").focus()
        tab.page.keyboard.press("ArrowRight")
        expect(tab.at("past-banner")).not_to_have_text(first)
        expect(tab.at("past-slider")).to_be_focused()
        assert re.match(
            r"\d{4}-\d{2}-\d{2} \d{2}:", tab.at("past-slider").get_attribute("aria-valuetext") or ""
        )
        second = tab.at("past-banner").inner_text()
        tab.at("action-past-back").click()
        expect(tab.at("past-banner")).not_to_have_text(second)
        third = tab.at("past-banner").inner_text()
        tab.at("action-past-play").click()
        expect(tab.at("past-banner")).not_to_have_text(third)
        fourth = tab.at("past-banner").inner_text()
        expect(tab.at("past-banner")).not_to_have_text(fourth)
        tab.at("action-past-play").click()
        expect(tab.at("action-past-play")).to_have_attribute("aria-pressed", "false")


def test_a_gap_is_drawn_and_named(browser: Browser, lived: Lived) -> None:
    with window(browser, lived.url, "zh-CN", scheme="dark") as tab:
        tab.open(f"/overview?at={_address(lived.gap + 60_000)}", "overview")
        expect(tab.at("past-gap-mark")).to_have_count(1)
        expect(tab.at("past-gap")).to_contain_text("没有记录")
        check_axe(tab)
        tab.keep("past-gap-zh-dark")


def test_a_narrow_page_has_all_of_it(browser: Browser, lived: Lived) -> None:
    at = sorted(lived.taken)[4]
    with window(browser, lived.url, width=520, scheme="dark") as tab:
        tab.open(f"/overview?at={_address(at)}", "overview")
        expect(tab.at("past-slider")).to_be_visible()
        wide = tab.page.evaluate("document.querySelector('.page').scrollWidth - innerWidth")
        assert wide <= 0
        tab.keep("past-narrow")


def test_nodes_and_jobs_show_the_same_moment(browser: Browser, lived: Lived) -> None:
    at = sorted(lived.taken)[4]
    board = SharedBoard(lived.taken[at], at / 1000)
    with window(browser, lived.url) as tab:
        tab.open(f"/jobs?at={_address(at)}", "jobs")
        expect(tab.at("past-banner")).to_be_visible()
        shown = tab.column("jobs", "Job Status")
        names = {f"{row.namespace}/{row.type}/{row.name}" for row in board.job_list}
        assert set(shown) <= names
        assert shown
        tab.open(f"/nodes?at={_address(at)}", "nodes")
        assert set(tab.column("nodes", "Name")) == {entry.row.name for entry in board.nodes.entries}


def test_a_moment_that_cannot_be_shown_is_named(browser: Browser, lived: Lived) -> None:
    with window(browser, lived.url) as tab:
        tab.page.goto(f"{lived.url}/overview?at=2001-01-01T00:00:00Z")
        expect(tab.page.get_by_text("is before the first record").first).to_be_visible()
        tab.at("action-now").click()
        expect(tab.at("past-banner")).to_have_count(0)
        tab.complaints.clear()
