"""What a page shows when the world under it changes: a deleted job, an upgraded server, and names
with characters that reorder the text beside them.
"""

from __future__ import annotations

from typing import cast

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.accessibility import check_axe
from tests.browser.chromium import Window, window
from tests.browser.layout import SIDEWAYS, settle
from tests.browser.made_objects import pytorch_job, warning
from tests.browser.sight import Sight
from tests.browser.still_console import served
from tests.console.clusters import (
    cluster,
    gpu_node,
    living_cluster,
    pod,
    quota_tree,
    reading,
    training_job,
)
from tests.console.worlds import StillCluster, still_world
from tests.turns import in_turn

pytestmark = pytest.mark.turns(4, 2)


def test_a_job_deleted_while_its_page_is_open_is_reported_and_comes_back_by_its_name(
    browser: Browser, simulated: Sight
) -> None:
    name = "short-lived"
    with window(browser, simulated.url) as tab:
        simulated.kubectl.apply([pytorch_job(name)])
        tab.page.goto(f"{simulated.url}/jobs/vision/pytorchjob/{name}")
        expect(tab.at("job-tabs")).to_be_visible()
        simulated.kubectl.delete("pytorchjob", name, "-n", "vision")
        gone = tab.page.locator("[data-testid=state-gone], [data-testid=job-of-ledger]")
        expect(gone).to_contain_text("deleted")
        expect(tab.at("job-tabs")).to_be_visible()
        for other in ("state-outdated", "state-error"):
            expect(tab.at(other)).to_have_count(0)
        tab.keep("job-deleted")

        tab.page.set_viewport_size({"width": 390, "height": 800})
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
        simulated.kubectl.apply([pytorch_job(name)])
        expect(gone).to_have_count(0)
        expect(tab.at("freshness")).to_be_visible()
    simulated.kubectl.delete("pytorchjob", name, "-n", "vision")


def test_without_a_ledger_the_last_values_of_a_deleted_job_stay(browser: Browser) -> None:
    world = still_world(living_cluster())
    with served(world) as address, window(browser, address) as tab:
        tab.page.goto(f"{address}/jobs/team-a/pytorchjob/bert")
        expect(tab.at("job-tabs")).to_be_visible()
        cast(StillCluster, world.cluster).show(cluster([gpu_node()]))
        gone = tab.at("state-gone")
        expect(gone).to_contain_text("This job has been deleted (last seen at 20")
        check_axe(tab)
        expect(tab.at("job-tabs")).to_be_visible()
        for other in ("state-outdated", "state-error", "freshness"):
            expect(tab.at(other)).to_have_count(0)
        expect(gone.get_by_role("link", name="Back to Training jobs")).to_have_attribute(
            "href", "/jobs"
        )
        cast(StillCluster, world.cluster).show(living_cluster())
        expect(gone).to_have_count(0)
        expect(tab.at("freshness")).to_be_visible()


NO_STORAGE = (
    "Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('off', "
    "'SecurityError') } })"
)
UPGRADED = {
    "en-US": "Fairlead was upgraded. Reload this page.",
    "zh-CN": "Fairlead 已升级，请重新加载此页面。",
}


ANOTHER_BUILD = """{
    const ask = window.fetch;
    window.fetch = async (address, ...more) => {
        const answer = await ask(address, ...more);
        if (!String(address).endsWith('/me')) return answer;
        return Response.json({ ...await answer.json(), build: '9.9.9+another' });
    };
}"""
ASK_ALL = "new BroadcastChannel('fairlead.hints').postMessage('*')"
"""The message of another tab when the stream of hints broke, as when a server is replaced."""


def upgrade(tab: Window) -> None:
    """From now on the server reports another build with every `/me`."""
    tab.page.add_init_script(ANOTHER_BUILD)
    tab.page.evaluate(ANOTHER_BUILD)
    tab.page.evaluate(ASK_ALL)


@pytest.mark.parametrize("locale", in_turn(sorted(UPGRADED), 2))
def test_an_old_page_is_reported_and_reloads_once_when_the_user_does_not_type(
    browser: Browser, simulated: Sight, locale: str
) -> None:
    with window(browser, simulated.url, locale) as tab:
        loads: list[str] = []
        tab.open("/jobs", "jobs")
        tab.page.keyboard.press("/")
        expect(tab.at("find-box").get_by_role("combobox")).to_be_focused()
        upgrade(tab)
        expect(tab.at("state-upgraded")).to_contain_text(UPGRADED[locale])
        tab.page.on("load", lambda page: loads.append(page.url))
        tab.page.wait_for_timeout(2500)  # longer than the check whether the user is typing
        assert loads == []
        with tab.page.expect_event("load"):
            tab.page.keyboard.press("Escape")
        expect(tab.at("state-upgraded")).to_contain_text(UPGRADED[locale])
        tab.page.wait_for_timeout(2500)
        assert len(loads) == 1
        tab.keep(f"upgraded-{locale}")


def test_a_browser_that_keeps_nothing_is_reported_and_never_reloads_by_itself(
    browser: Browser, simulated: Sight
) -> None:
    with window(browser, simulated.url) as tab:
        loads: list[str] = []
        tab.page.add_init_script(NO_STORAGE)
        tab.open("/jobs", "jobs")
        upgrade(tab)
        expect(tab.at("state-upgraded")).to_be_visible()
        tab.page.on("load", lambda page: loads.append(page.url))
        tab.page.wait_for_timeout(2500)
        assert loads == []


def test_a_script_that_an_upgrade_took_away_is_no_bug(browser: Browser, simulated: Sight) -> None:
    with window(browser, simulated.url) as tab:
        tab.page.route("**/assets/QuotaBoard-*.js", lambda route: route.fulfill(status=404))
        tab.open("/jobs", "jobs")
        tab.page.get_by_role("link", name="Quota").first.click()
        expect(tab.at("state-script")).to_contain_text("A part of this page could not be loaded.")
        tab.page.evaluate("sessionStorage.setItem('fairlead.loadedFor', '9.9.9+another')")
        upgrade(tab)
        tab.page.goto(f"{simulated.url}/quota")
        expect(tab.at("state-script")).to_contain_text(UPGRADED["en-US"])
        tab.page.unroute_all()
        with tab.page.expect_event("load"):
            tab.at("state-script").get_by_role("button", name="Reload").click()
        expect(tab.at("page-quota")).to_be_visible()
        script_errors = [line for line in tab.complaints if "dynamically imported module" in line]
        tab.complaints = [line for line in tab.complaints if line not in script_errors]


def test_marks_of_direction_are_seen_and_reorder_nothing(
    browser: Browser, simulated: Sight
) -> None:
    name, reason, message = (
        "direction",
        "\u202edesreveR",
        "user\u200b \u05e9\u05dc\u05d5\u05dd \u2066left\u2069",
    )
    with (
        warning(simulated, name, reason, message),
        window(browser, simulated.url, height=2400) as tab,
    ):
        tab.open("/overview", "overview")
        printed = tab.at("panel-recent-warnings").locator("li", has_text="desreveR")
        expect(printed).to_contain_text("⟨U+202E⟩desreveR")
        expect(printed).to_contain_text(
            "user⟨U+200B⟩ \u05e9\u05dc\u05d5\u05dd ⟨U+2066⟩left⟨U+2069⟩"
        )
        assert printed.locator("b").evaluate("it => getComputedStyle(it).unicodeBidi") == "isolate"
        tab.keep("marks-of-direction")


def test_a_source_that_does_not_answer_in_time_is_one_sentence_with_retry(
    browser: Browser, simulated: Sight
) -> None:
    node = next(name for name in sorted(simulated.counts().nodes) if "a100" in name)
    late = {
        "ok": False,
        "status": 504,
        "code": "outside-timeout",
        "error": "Prometheus did not answer within 10 s",
        "hint": "",
        "fields": [],
    }
    with window(browser, simulated.url, height=1800) as tab:
        asked: list[str] = []
        tab.page.on(
            "request",
            lambda request: (
                asked.append(request.url) if "/charts/gpu-duty-cycle" in request.url else None
            ),
        )
        tab.page.route(
            "**/api/v1/charts/gpu-duty-cycle*", lambda route: route.fulfill(status=504, json=late)
        )
        tab.open(f"/nodes/{node}", "node")
        chart = tab.at("panel-gpu-duty-cycle")
        expect(chart.get_by_role("alert")).to_contain_text("did not respond in time")
        assert len(asked) == 1
        tab.page.unroute_all()
        chart.get_by_role("button", name="Retry").click()
        expect(chart.locator("canvas").first).to_be_visible()

        tab.page.route(
            "**/api/v1/charts/gpu-duty-cycle*", lambda route: route.fulfill(status=504, json=late)
        )
        tab.page.evaluate(ASK_ALL)
        expect(tab.at("chart-old")).to_contain_text("Older data is shown")
        expect(chart.locator("canvas").first).to_be_visible()
        expect(tab.at("chart-old").get_by_role("button", name="Retry")).to_be_visible()
        tab.page.unroute_all()
        tab.page.evaluate(ASK_ALL)
        expect(tab.at("chart-old")).to_have_count(0)
        tab.complaints = [line for line in tab.complaints if not line.startswith("status 504")]


LONG = ".".join(["n" * 63, "o" * 63, "d" * 63, "e" * 61])
"""The longest possible name: 253 letters without a place to break a line."""


def test_names_of_the_greatest_length_move_nothing_aside(browser: Browser) -> None:
    space, job = "s" * 63, training_job("j" * 63, 1, 1, namespace="s" * 63)
    node = gpu_node(LONG, 2)
    members = [
        pod(LONG, LONG, {"nvidia.com/gpu": 1}, namespace=space),
        pod("w" * 253, LONG, {"nvidia.com/gpu": 1}, namespace=space, job=job),
    ]
    cards = [
        reading(LONG, index, holder=members[index], uuid=f"GPU-{index}{'0' * 249}")
        for index in range(2)
    ]
    world = still_world(cluster([node], members, [job], gpus=cards, quota=quota_tree()))
    pages = [
        ("/overview", "overview"),
        ("/nodes", "nodes"),
        (f"/nodes/{LONG}", "node"),
        ("/gpus", "holders"),
        (f"/gpus?open={space}/{LONG}", "holders"),
        ("/gpus?by=owner", "holders"),
        ("/devices", "devices"),
        ("/jobs", "jobs"),
        (f"/jobs/{space}/{job.type}/{job.name}", "job"),
        (f"/mine?namespace={space}", "mine"),
    ]
    wrong: list[str] = []
    with served(world) as url, window(browser, url) as tab:
        for address, page in pages:
            tab.open(address, page)
            settle(tab)
            for width in (390, 1024, 1440):
                tab.page.set_viewport_size({"width": width, "height": 1000})
                settle(tab)
                wrong += [
                    f"{address[:40]} at {width}: {each}" for each in tab.page.evaluate(SIDEWAYS)
                ]
        tab.keep("names-of-253-letters")
    assert not wrong, "\n".join(wrong)
