"""The pages of the ledger: usage and cost, idle GPUs, prices, and jobs that were deleted.

Numbers are those of `usage_world.LIVES`, reckoned here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.accessibility import check_axe
from tests.browser.chromium import Window, window
from tests.browser.layout import DOM_NODES, SIDEWAYS, cut_texts, dom_nodes, settle
from tests.browser.made_objects import pytorch_job
from tests.browser.sight import Sight
from tests.browser.signed_in import signed_in, tab_to
from tests.browser.usage_world import HOURS, ledger_of, usage_console
from tests.turns import in_turn
from tests.usage.memory_ledger import MemoryLedger

from fairlead.errors import StoreDown

ANN = 144 + 4
BOB = 2 * (HOURS - 50)
NODE_HOUR, LIST_HOUR = 40, 50


@pytest.fixture
def ledger() -> MemoryLedger:
    return ledger_of()


@pytest.fixture
def address(ledger: MemoryLedger) -> Iterator[str]:
    with usage_console(ledger) as address:
        yield address


def sign_in(tab: Window, address: str, person: str = "anna") -> None:
    signed_in(tab, address, f"token-of-{person}", "/me", "access")


def cost_of(gpus: int, cores: int, hours: float, memory_mib: int = 4096) -> float:
    """Of a pod on the A100 node (8 GPUs, 64 cores, 512 GiB), by docs/spec/usage.md#cost."""
    share = 0.9 * gpus / 8 + 0.1 * (0.5 * cores / 64 + 0.5 * memory_mib / 524_288)
    return NODE_HOUR * hours * share


ANN_COST = cost_of(4, 16, 36) + cost_of(1, 2, 4)


def test_usage_by_user_has_hours_idle_share_and_cost(address: str, browser: Browser) -> None:
    with window(browser, address, height=1100) as tab:
        sign_in(tab, address)
        tab.open("/usage", "usage")
        expect(tab.at("usage-gpu-hours")).to_have_text(f"{ANN + BOB:.1f}")
        hours = tab.column("usage-user", "GPU-hours")
        assert hours == {"//ann": f"{ANN}.0", "//bob": f"{BOB}.0", "//": "0.0"}
        assert tab.column("usage-user", "Idle share") == {
            "//ann": "0.0%",
            "//bob": "100.0%",
            "//": "—",
        }
        assert tab.column("usage-user", "Cost")["//ann"] == f"{ANN_COST:.2f}"
        assert tab.column("usage-user", "List cost")["//ann"] == f"{ANN_COST * 50 / 40:.2f}"
        expect(tab.page.locator(".daybar")).to_have_count(3)
        tab.at("action-days-table").click()
        days = tab.column("usage-days", "ann")
        # 4 GPUs from hour 6 to 42, and one from 0 to 4
        assert list(days.values()) == [f"{4 * 18 + 4}.0", f"{4 * 18}.0", "0.0"]
        tab.page.get_by_text("Use", exact=True).first.click()
        assert list(tab.column("usage-days", "Idle").values()) == ["0.0", "0.0", f"{BOB}.0"]
        assert dom_nodes(tab) < DOM_NODES
        tab.keep("usage")


def test_rows_and_period_are_in_the_address_and_lead_on(address: str, browser: Browser) -> None:
    with window(browser, address) as tab:
        sign_in(tab, address)
        tab.open("/usage?by=job", "usage")
        expect(tab.page.locator("tr[data-key=uid-old]")).to_contain_text("144.0")
        tab.page.get_by_role("radio", name="Quota path").check(force=True)
        expect(tab.page).to_have_url(re.compile("by=leaf"))
        expect(tab.page.locator("tr[data-key='//root.a']")).to_contain_text(f"{ANN}.0")
        tab.page.get_by_role("radio", name="24 h").check(force=True)
        expect(tab.page).to_have_url(re.compile("period=24h"))
        # from 08:00 of the day before: 10 of the 36 hours of 4 GPUs
        expect(tab.page.locator("tr[data-key='//root.a']")).to_contain_text(f"{4 * 10}.0")
        tab.page.get_by_role("radio", name="Month").check(force=True)
        expect(tab.at("period-month")).to_be_visible()
        tab.page.get_by_role("radio", name="Custom").check(force=True)
        tab.at("period-from").fill("2026-01-03")
        tab.at("period-to").fill("2026-01-04")
        expect(tab.page).to_have_url(re.compile("from=2026-01-03&to=2026-01-04"))
        expect(tab.page.locator("tr[data-key='//root.a']")).to_be_visible()


def test_a_researcher_sees_the_own_namespaces_and_no_prices(address: str, browser: Browser) -> None:
    with window(browser, address) as tab:
        sign_in(tab, address, "bob")
        tab.open("/usage", "usage")
        expect(tab.at("usage-gpu-hours")).to_have_text(f"{BOB}.0")
        assert list(tab.column("usage-user", "GPU-hours")) == ["//bob"]
        expect(tab.at("action-prices")).to_have_count(0)
        tab.open("/idle", "idle")
        expect(tab.at("table-idle")).to_contain_text("notebook")
        expect(tab.at("panel-idle-split")).to_have_count(0)  # capacity belongs to all
        tab.page.goto(f"{address}/jobs?deleted=yes")
        expect(tab.at("page-jobs")).to_contain_text("The ledger has no deleted jobs")


def test_idle_names_who_to_ask_and_where_the_money_went(address: str, browser: Browser) -> None:
    with window(browser, address, height=1100) as tab:
        sign_in(tab, address)
        tab.open("/idle", "idle")
        row = tab.page.locator("tr[data-key='idle/team-c/notebook/gpu-1']")
        expect(row).to_contain_text("Ask bob to end the pod, or to use its GPUs.")
        tab.page.goto(f"{address}/idle?reason=idle&user=bob&namespace=team-c")
        expect(tab.at("table-idle").locator("tbody tr")).to_have_count(1)
        expect(row).to_be_visible()
        tab.page.goto(f"{address}/idle?user=ann")
        expect(tab.at("page-idle")).to_contain_text("Nothing matches the filters.")
        tab.open("/idle", "idle")
        assert tab.column("idle", "GPU-hours")["idle/team-c/notebook/gpu-1"] == f"{BOB}.0"
        split = tab.at("idle-split")
        # a node of 8 GPUs; one of them broken in the first day, two stranded in the second
        total = 8 * HOURS
        for part, hours in {
            "used": ANN,
            "idle": BOB,
            "stranded": 2 * 24,
            "broken": 24,
            "free": total - ANN - BOB - 48 - 24,
            "unknown": 0,
        }.items():
            item = split.locator(f"li[data-part={part}]")
            expect(item).to_contain_text(f"{hours:.1f} h")
            expect(item).to_contain_text(f"{100 * hours / total:.1f}%")
            expect(item).to_contain_text(f"{NODE_HOUR * 0.9 * hours / 8:,.2f}")
        expect(tab.at("table-idle-nodes")).to_contain_text("gpu-1")
        assert dom_nodes(tab) < DOM_NODES
        tab.keep("idle")


def test_a_deleted_job_keeps_its_page_with_cost_and_manifest(
    address: str, browser: Browser
) -> None:
    with window(browser, address, height=1000) as tab:
        sign_in(tab, address)
        tab.open("/jobs", "jobs")
        expect(tab.page.locator("tr[data-key='team-a/pytorchjob/bert']")).to_be_visible()
        tab.page.get_by_role("radio", name="deleted").check(force=True)
        row = tab.page.locator("tr[data-key='team-a/mpijob/old uid-old']")
        expect(row).to_contain_text("Deleted")
        expect(tab.page.locator("tr[data-key='team-a/pytorchjob/bert']")).to_have_count(0)
        tab.page.goto(f"{address}/jobs/team-a/mpijob/old?tab=cost")
        expect(tab.at("job-of-ledger")).to_contain_text("from the ledger")
        expect(tab.at("cost-duration")).to_have_text("1d12h")
        cost = cost_of(4, 16, 36)
        expect(tab.at("cost-cost")).to_contain_text(f"{cost:.2f}")
        expect(tab.at("cost-list")).to_contain_text(f"{cost * 1.25:.2f}")
        expect(tab.at("cost-saved")).to_contain_text("20.0%")
        assert tab.column("job-cost", "Instance type") != {}
        expect(tab.at("table-job-cost")).to_contain_text("a100-8")
        tab.keep("job-cost")
        tab.page.get_by_role("tab", name="YAML").click()
        expect(tab.at("job-tabs")).to_contain_text("kind: MPIJob")
        tab.page.get_by_role("tab", name="Instances").click()
        expect(tab.at("table-job-instances")).to_contain_text("old-0")
        expect(tab.page.get_by_role("tab", name="Logs")).to_have_count(0)
        expect(tab.at("job-actions")).to_have_count(0)
        tab.page.goto(f"{address}/jobs/team-a/mpijob/never")
        expect(tab.at("state-error")).to_be_visible()


def test_an_earlier_job_of_the_name_of_a_living_one_has_its_page(
    address: str, browser: Browser
) -> None:
    with window(browser, address, height=1000) as tab:
        sign_in(tab, address)
        tab.open("/jobs?deleted=yes", "jobs")
        row = tab.page.locator("tr[data-key='team-a/pytorchjob/bert uid-earlier']")
        row.click()
        expect(row).to_have_attribute("aria-selected", "true")
        panel = tab.at("side-panel")
        expect(panel).to_contain_text("uid-earlier")
        panel.locator("a[href*='uid=uid-earlier']").first.click()
        expect(tab.at("job-of-ledger")).to_contain_text("from the ledger")
        tab.page.get_by_role("tab", name="YAML").click()
        expect(tab.at("job-tabs")).to_contain_text("kind: MPIJob")
        expect(tab.page).to_have_url(re.compile("uid=uid-earlier"))
        tab.page.goto(f"{address}/jobs/team-a/pytorchjob/bert")
        expect(tab.at("job-actions")).to_be_visible()
        expect(tab.at("job-of-ledger")).to_have_count(0)


def test_an_administrator_enters_and_ends_a_price(browser: Browser) -> None:
    ledger = ledger_of(with_price=False)
    with usage_console(ledger) as address, window(browser, address) as tab:
        sign_in(tab, address)
        tab.open("/usage", "usage")
        expect(tab.at("usage-cost")).to_have_text("—")
        expect(tab.at("usage-figures")).to_contain_text("No price is entered")
        tab.at("action-prices").click()
        expect(tab.at("prices")).to_contain_text("Without a price, usage has hours and no cost.")
        tab.at("action-add-price").click()
        tab.at("price-nodes").fill("gpu-model=A100")
        tab.at("price-nodeHour").fill("-1")
        tab.at("price-currency").fill("EUR")
        tab.at("price-validFrom").fill("2026-01-03")
        expect(tab.at("price-form")).to_contain_text("negative")
        expect(tab.at("form-submit")).to_be_disabled()
        tab.at("price-nodeHour").fill("40")
        expect(tab.at("form-submit")).to_be_enabled()
        tab.keep("price-form")
        tab.at("form-submit").click()
        expect(tab.at("table-prices")).to_be_visible()
        expect(tab.at("table-prices")).to_contain_text("gpu-model=A100")
        tab.keep("prices")
        check_axe(tab)
        tab.page.keyboard.press("Escape")
        expect(tab.at("usage-cost")).to_contain_text("EUR")
        tab.at("action-prices").click()
        tab.page.get_by_role("button", name="End the price of gpu-model=A100").click()
        tab.at("price-validFrom").fill("2026-01-05")
        expect(tab.at("form-submit")).to_be_enabled()
        tab.at("form-submit").click()
        expect(tab.at("table-prices").locator("tbody tr")).to_have_count(2)
        assert (ledger.added[0].node_hour, ledger.added[0].ended) == (40_000_000, False)
        assert ledger.added[1].ended


def test_the_quota_board_has_hours_beside_the_present(address: str, browser: Browser) -> None:
    with window(browser, address) as tab:
        sign_in(tab, address)
        tab.open("/quota", "quota")
        expect(tab.at("table-quota-cpu")).to_contain_text("Held, 30 days")
        column = tab.column("quota-cpu", "Held, 30 days")
        held = {path: hours for path, hours in column.items() if hours}
        a = 16 * 36 + 2 * 4 + 8 * 50
        b = 8 * (HOURS - 50)
        assert held == {"root": f"{a + b:,.1f}", "root.a": f"{a:,.1f}", "root.b": f"{b:.1f}"}


def test_without_a_store_the_pages_have_the_reason(browser: Browser) -> None:
    with usage_console(None) as address, window(browser, address) as tab:
        sign_in(tab, address)
        for path in ("usage", "idle"):
            tab.page.goto(f"{address}/{path}")
            expect(tab.at("state-error").first).to_contain_text("no usage ledger")
        tab.open("/quota", "quota")
        expect(tab.at("table-quota-cpu")).to_be_visible()
        expect(tab.page.get_by_text("Held, 30 days")).to_have_count(0)


def test_while_the_store_is_down_only_the_ledger_is_missing(
    ledger: MemoryLedger, address: str, browser: Browser
) -> None:
    with window(browser, address) as tab:
        sign_in(tab, address)
        ledger.down = StoreDown("the database does not answer", "look at its server")
        tab.page.goto(f"{address}/usage")
        expect(tab.at("state-error").first).to_contain_text("the database does not answer")
        expect(tab.at("state-server")).to_have_count(0)
        tab.open("/nodes", "nodes")
        expect(tab.page.locator("tr[data-key=gpu-1]")).to_be_visible()
        ledger.down = None
        tab.open("/usage", "usage")
        expect(tab.at("usage-gpu-hours")).to_have_text(f"{ANN + BOB:.1f}")
        tab.complaints = [each for each in tab.complaints if not each.startswith("status 503")]


@pytest.mark.parametrize(
    ("path", "scheme", "locale"),
    in_turn(
        [
            (path, scheme, locale)
            for path in ("/usage?by=job", "/idle", "/jobs/team-a/mpijob/old?tab=cost")
            for scheme, locale in (("light", "en-US"), ("dark", "zh-CN"))
        ],
        2,
    ),
)
def test_pages_are_accessible_also_when_narrow(
    address: str, browser: Browser, path: str, scheme: str, locale: str
) -> None:
    with window(browser, address, locale, 1440, 1000, scheme) as tab:
        sign_in(tab, address)
        tab.page.goto(f"{address}{path}")
        settle(tab)
        check_axe(tab)
        name = re.sub(r"[^a-z]+", "-", path.strip("/"))
        tab.keep(f"ledger-{name}-{scheme}")
        for width in (1280, 768, 400):
            tab.page.set_viewport_size({"width": width, "height": 900})
            settle(tab)
            assert tab.page.evaluate(SIDEWAYS) == [], width
            if width == 1280:
                assert cut_texts(tab) == []
        tab.keep(f"ledger-{name}-{scheme}-narrow")


def test_the_pages_are_reached_and_used_by_keyboard(address: str, browser: Browser) -> None:
    with window(browser, address) as tab:
        sign_in(tab, address)
        tab.page.keyboard.press("g")
        tab.page.keyboard.press("f")
        expect(tab.at("page-usage")).to_be_visible()
        tab_to(tab, "action-prices")
        tab.page.keyboard.press("Enter")
        expect(tab.at("prices")).to_be_visible()
        tab.page.keyboard.press("Escape")
        expect(tab.at("prices")).to_have_count(0)
        tab.page.keyboard.press("g")
        tab.page.keyboard.press("i")
        expect(tab.at("page-idle")).to_be_visible()


def test_a_month_report_is_downloaded(address: str, browser: Browser) -> None:
    with window(browser, address) as tab:
        sign_in(tab, address)
        tab.open("/usage?month=2026-01", "usage")
        tab.at("action-report").click()
        tab.page.get_by_role("radio", name="JSON").check(force=True)
        with tab.page.expect_download() as saved:
            tab.at("action-download").click()
        assert saved.value.suggested_filename == "usage-2026-01.json"
        report = json.loads(saved.value.path().read_text(encoding="utf-8"))
        assert report["month"] == "2026-01"


def test_on_the_laptop_a_deleted_job_stays_in_the_ledger(
    simulated: Sight, browser: Browser
) -> None:
    name = "in-the-ledger"
    job = f"/jobs/vision/pytorchjob/{name}"
    with window(browser, simulated.url) as tab:
        simulated.kubectl.apply([pytorch_job(name)])
        tab.page.goto(f"{simulated.url}{job}?tab=cost")
        expect(tab.at("job-cost")).to_be_visible()
        simulated.kubectl.delete("pytorchjob", name, "-n", "vision")
        expect(tab.at("job-of-ledger")).to_contain_text("from the ledger")
        tab.open("/jobs?deleted=yes", "jobs")
        expect(tab.at("table-jobs")).to_contain_text(name)
        tab.open("/usage?period=24h&by=job", "usage")
        expect(tab.at("usage-gpu-hours")).to_have_text(re.compile(r"[0-9]"))
        tab.at("action-prices").click()
        expect(tab.at("table-price-classes")).to_be_visible()
        expect(tab.at("action-add-price")).to_have_count(0)
        tab.keep("usage-laptop-prices")
        tab.page.keyboard.press("Escape")
        tab.keep("usage-laptop")
        tab.open("/idle", "idle")
        expect(tab.at("panel-idle-split")).to_be_visible()
        tab.keep("idle-laptop")
        assert dom_nodes(tab) < DOM_NODES
