"""The replay of the past on the page of the quota tree: begun, seen after a reload, cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest
from msgspec import structs
from playwright.sync_api import Browser, expect
from tests.browser.accessibility import check_axe
from tests.browser.chromium import window
from tests.browser.layout import SIDEWAYS, settle
from tests.browser.people_pages import MemoryTrail
from tests.browser.signed_in import signed_in
from tests.browser.still_console import served
from tests.console.people_parts import member
from tests.console.sign_in_parts import FakeSignInApi, Parts
from tests.console.worlds import StillClock, still_world
from tests.turns import in_turn
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.replayed_world import MODEL, lived

from fairlead.model.people.rows import UserRole
from fairlead.model.snapshot import build_snapshot

pytestmark = pytest.mark.turns(2, 1)

GPU: Final = "nvidia.com/gpu"
WIDE: Final = 1440


class HeldLedger(MemoryLedger):
    """Its nodes are returned after `released`."""

    def __init__(self, past: MemoryLedger) -> None:
        super().__init__()
        self.__dict__.update(past.__dict__)
        self.released = threading.Event()

    async def node_intervals(self, *given: Any) -> Any:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self.released.wait)
        return await super().node_intervals(*given)


@pytest.fixture
def site() -> Iterator[tuple[str, HeldLedger]]:
    """Two hours of a simulated cluster; lived in a thread, because this one has a loop."""
    with ThreadPoolExecutor(1) as pool:
        past, end, tree = pool.submit(lived, 2 / 24, 6).result()
    ledger = HeldLedger(past)
    users = (member("anna", role=UserRole.ADMIN), member("bob"))
    desk = Parts(FakeSignInApi(users, ()), records=MemoryTrail()).desk()
    world = still_world(build_snapshot(taken_at=end / 1000, quota_tree=tree))
    world = structs.replace(world, clock=StillClock(end / 1000))
    try:
        with served(world, desk, ledger=ledger) as address:
            yield address, ledger
    finally:
        ledger.released.set()


@pytest.mark.parametrize("locale", in_turn(["en-US", "zh-CN"], 2))
def test_the_past_is_replayed_with_other_nodes_and_bounds(
    site: tuple[str, HeldLedger], browser: Browser, locale: str
) -> None:
    address, ledger = site
    with window(browser, address, locale, WIDE, 1400) as tab:
        signed_in(tab, address, "token-of-anna", "/me", "access")
        tab.open("/quota/tree?whatif=1", "quota-tree")
        expect(tab.at("action-replay")).to_be_disabled()
        tab.at("choices-replay-period").get_by_role("radio").first.check()
        tab.at("replay-model").select_option(MODEL)
        tab.at("replay-count").fill("2")
        tab.at(f"bound-root.vision-{GPU}-max").fill("15")
        tab.at("action-replay").click()
        state = tab.at("replay-state")
        expect(state).to_have_attribute("data-state", "running")
        expect(tab.at("action-replay")).to_be_disabled()
        own = state.get_attribute("data-id")
        tab.page.reload()
        expect(state).to_have_attribute("data-state", "running")
        expect(state).to_have_attribute("data-id", own or "")
        expect(state).to_contain_text(f"{MODEL}=+2")
        ledger.released.set()
        expect(state).to_have_attribute("data-state", "done", timeout=30_000)
        expect(state).to_have_attribute("data-id", own or "")
        rows = tab.at("table-replay").locator("tbody tr")
        expect(rows).to_have_count(9)  # two leaves and all of them, each three times
        expect(tab.at("table-replay-free").locator("tbody tr")).to_have_count(3)
        settle(tab)
        check_axe(tab)
        assert tab.page.evaluate(SIDEWAYS) == []
        tab.keep(f"replay-{locale}")


def test_a_replay_is_cancelled(site: tuple[str, HeldLedger], browser: Browser) -> None:
    address, _ = site
    with window(browser, address) as tab:
        signed_in(tab, address, "token-of-anna", "/me", "access")
        tab.open("/quota/tree?whatif=1", "quota-tree")
        tab.at("replay-model").select_option(MODEL)
        tab.at("action-replay").click()
        tab.at("action-cancel-replay").click()
        expect(tab.at("replay-state")).to_have_attribute("data-state", "cancelled")
        expect(tab.at("action-cancel-replay")).to_have_count(0)
        expect(tab.at("action-replay")).to_be_enabled()


def test_a_researcher_sees_no_replay(site: tuple[str, HeldLedger], browser: Browser) -> None:
    address, _ = site
    with window(browser, address) as tab:
        signed_in(tab, address, "token-of-bob", "/me", "access")
        tab.open("/quota/tree?whatif=1", "quota-tree")
        expect(tab.at("panel-replay")).to_have_count(0)
