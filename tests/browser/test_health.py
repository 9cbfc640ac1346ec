"""The page Health shows what the console depends on, and every other page shows a failing
dependency, once.
"""

from __future__ import annotations

import pytest
from msgspec import structs
from playwright.sync_api import Browser, expect
from tests.browser.chromium import Window, window
from tests.browser.still_console import served
from tests.console.clusters import living_cluster, telemetry
from tests.console.worlds import still_world
from tests.turns import in_turn

from fairlead.model.dependency import DependencyLooks, ServerLook

pytestmark = pytest.mark.turns(2, 0)

WELL = ServerLook("https://10.0.0.1:6443", "v1.36.3", 0.012, 0.0)
REFUSED = "Prometheus `http://prom:9090` refused the connection"
PAGES = [
    ("/overview", "overview"),
    ("/nodes", "nodes"),
    ("/gpus", "holders"),
    ("/jobs", "jobs"),
    ("/quota", "quota"),
    ("/mine", "mine"),
]


class FixedDependencies:
    """A `ports.Dependencies` with an answer that a test changes."""

    def __init__(self, looks: DependencyLooks) -> None:
        self.looks = looks

    async def look(self) -> DependencyLooks:
        return self.looks


def failing(tab: Window) -> list[str]:
    """Names of the dependencies that this page shows as failing."""
    found = tab.page.locator("[data-testid^=health-fails-]")
    return [
        (each.get_attribute("data-testid") or "").removeprefix("health-fails-")
        for each in found.all()
    ]


@pytest.mark.parametrize(
    ("locale", "name", "state"),
    in_turn([("en-US", "Prometheus", "Failed"), ("zh-CN", "Prometheus 监控", "故障")], 2),
)
def test_what_fails_is_reported_on_every_page_and_leads_to_the_page_health(
    browser: Browser, locale: str, name: str, state: str
) -> None:
    dependencies = FixedDependencies(
        DependencyLooks(WELL, ServerLook("http://prom:9090", failure=REFUSED))
    )
    with (
        served(structs.replace(still_world(living_cluster()), dependencies=dependencies)) as url,
        window(browser, url, locale) as tab,
    ):
        for address, page in PAGES:
            tab.open(address, page)
            banner = tab.at("health-fails-prometheus")
            expect(banner).to_contain_text(REFUSED)
            expect(banner).to_contain_text(name)
            assert failing(tab) == ["prometheus"]
        tab.keep(f"health-banner-{locale}")
        banner.get_by_role("link").click()
        expect(tab.at("page-health")).to_be_visible()
        row = tab.at("health-prometheus")
        expect(row).to_contain_text(state)
        expect(row).to_contain_text("--prometheus")
        assert (
            tab.at("table-health").locator("tbody tr").first.get_attribute("data-testid")
            == "health-prometheus"
        )
        assert failing(tab) == []


def test_what_the_page_itself_shows_of_an_input_is_not_shown_twice(browser: Browser) -> None:
    dependencies = FixedDependencies(
        DependencyLooks(WELL, ServerLook("http://prom:9090", failure=REFUSED))
    )
    world = still_world(living_cluster(), source=telemetry("failing", REFUSED, "see why"))
    with (
        served(structs.replace(world, dependencies=dependencies)) as url,
        window(browser, url) as tab,
    ):
        tab.open("/nodes", "nodes")
        expect(tab.at("state-partial").filter(has_text=REFUSED)).to_have_count(1)
        expect(tab.page.locator("[data-testid^=health-fails-]")).to_have_count(0)
        # the board of quota shows no GPU values, so nothing else on it reports the failure
        tab.open("/quota", "quota")
        expect(tab.at("health-fails-prometheus")).to_be_visible()
        expect(tab.at("health-fails-gpu-telemetry")).to_be_visible()


def test_all_well_is_reported_nowhere_but_on_its_page(browser: Browser) -> None:
    with (
        served(
            structs.replace(
                still_world(living_cluster()), dependencies=FixedDependencies(DependencyLooks(WELL))
            )
        ) as url,
        window(browser, url) as tab,
    ):
        tab.open("/overview", "overview")
        tab.page.keyboard.press("g")
        tab.page.keyboard.press("h")
        expect(tab.at("page-health")).to_be_visible()
        expect(tab.at("health-cluster-api")).to_contain_text(
            "https://10.0.0.1:6443 responds in 12 ms, version v1.36.3."
        )
        expect(tab.page.locator("tr[data-state=fail]")).to_have_count(0)
        assert failing(tab) == []
