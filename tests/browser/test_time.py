"""The badge of a simulated cluster controls its time: by mouse and by keyboard, in both languages.
A real cluster has no such badge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.chromium import OUTPUT, Window, window
from tests.browser.sight import Sight
from tests.kube.laptop import Laptop, running_laptop
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(2, 1)


@pytest.fixture(scope="module")
def world() -> Iterator[Laptop]:
    """A laptop of its own, because the time of the shared laptop has to keep moving."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with running_laptop(OUTPUT / "laptop-time.log", "--scenario=documents-001") as one:
        yield one


def face(world: Laptop) -> dict[str, object]:
    found: dict[str, object] = world.console.api("/clock")
    return found


def opened(tab: Window) -> None:
    tab.open("/overview", "overview")
    tab.at("badge-simulated").click()
    expect(tab.at("time-panel")).to_be_visible()


def test_pause_step_and_resume(browser: Browser, world: Laptop) -> None:
    with window(browser, world.console.url) as tab:
        opened(tab)
        tab.at("time-pause").click()
        expect(tab.at("badge-simulated")).to_contain_text("paused")
        shown = tab.at("badge-simulated").inner_text()
        stood = face(world)["now"]
        tab.page.wait_for_timeout(2200)
        assert (tab.at("badge-simulated").inner_text(), face(world)["now"]) == (shown, stood), (
            "nothing moves, not even the badge"
        )
        tab.at("time-step").click()
        expect(tab.at("time-happened")).to_contain_text(re.compile(r"\d+ writes?:"))
        assert str(face(world)["now"]) >= str(stood)
        expect(tab.page.locator(".fresh")).not_to_have_attribute("data-stale", "true")
        tab.keep("time-paused-light")
        tab.at("time-resume").click()
        expect(tab.at("badge-simulated")).not_to_contain_text("paused")
        assert face(world)["isPaused"] is False


def test_speed_is_chosen_or_typed_and_a_bad_one_is_reported(
    browser: Browser, world: Laptop
) -> None:
    with window(browser, world.console.url) as tab:
        opened(tab)
        tab.at("time-panel").get_by_role("button", name="×60", exact=True).click()
        expect(tab.at("badge-simulated")).to_contain_text("×60")
        tab.at("time-speed-own").fill("quick")
        tab.at("time-speed-set").click()
        expect(tab.at("time-fault")).to_contain_text("0.01 to 100000")
        expect(tab.at("time-speed-own")).to_have_value("quick")
        tab.at("time-speed-own").fill("1")
        tab.at("time-speed-own").press("Enter")
        expect(tab.at("time-fault")).to_have_count(0)
        expect(tab.at("badge-simulated")).not_to_contain_text("×")
        assert face(world)["speed"] == 1


def test_a_long_run_is_asked_again_shows_its_progress_and_ends_with_a_pause(
    browser: Browser, world: Laptop
) -> None:
    with window(browser, world.console.url, scheme="dark") as tab:
        opened(tab)
        before = str(face(world)["now"])
        tab.at("time-advance-own").fill("360d")
        tab.at("time-advance-set").click()
        expect(tab.at("time-ask")).to_contain_text("It cannot go back")
        tab.keep("time-ask-dark")
        tab.at("time-ask").get_by_role("button", name="Cancel").click()
        expect(tab.at("time-ask")).to_have_count(0)
        expect(tab.at("time-advance-set")).to_be_focused()
        assert face(world)["until"] is None
        tab.at("time-advance-set").click()
        tab.at("time-ask-yes").click()
        expect(tab.at("time-advance-set")).to_be_focused()
        expect(tab.at("badge-simulated")).to_contain_text("advancing")
        tab.at("time-pause").click()
        expect(tab.at("badge-simulated")).to_contain_text("paused")
        after = face(world)
        assert (after["until"], after["isPaused"]) == (None, True)
        assert str(after["now"]) > before
        tab.at("time-resume").click()
        expect(tab.at("time-pause")).to_be_visible()


def test_a_short_run_needs_no_question(browser: Browser, world: Laptop) -> None:
    with window(browser, world.console.url) as tab:
        opened(tab)
        before = face(world)
        tab.at("time-panel").get_by_role("button", name="+1h", exact=True).click()
        wait_until(
            "it is an hour later", lambda: str(face(world)["now"])[:13] > str(before["now"])[:13]
        )
        expect(tab.at("badge-simulated")).not_to_contain_text("advancing")
        expect(tab.at("badge-simulated")).not_to_contain_text("%")


def test_the_keyboard_alone_is_enough(browser: Browser, world: Laptop) -> None:
    with window(browser, world.console.url) as tab:
        tab.open("/nodes", "nodes")
        keys = tab.page.keyboard
        keys.press("t")
        expect(tab.at("time-panel")).to_be_visible()
        expect(tab.at("time-pause")).to_be_focused()
        keys.press("Enter")
        expect(tab.at("badge-simulated")).to_contain_text("paused")
        keys.press("Tab")
        expect(tab.at("time-step")).to_be_focused()
        keys.press("Escape")
        expect(tab.at("time-panel")).to_have_count(0)
        expect(tab.at("badge-simulated")).to_be_focused()
        expect(tab.at("page-nodes")).to_be_visible()
        keys.press("Enter")
        tab.at("time-resume").press("Enter")
        expect(tab.at("badge-simulated")).not_to_contain_text("paused")
        tab.page.mouse.click(600, 600)
        expect(tab.at("time-panel")).to_have_count(0)


def test_chinese_and_an_order_from_elsewhere(browser: Browser, world: Laptop) -> None:
    with (
        window(browser, world.console.url, locale="zh-CN", scheme="dark") as tab,
        window(browser, world.console.url) as other,
    ):
        opened(other)
        tab.open("/overview", "overview")
        other.at("time-pause").click()
        expect(tab.at("badge-simulated")).to_contain_text("已暂停")
        tab.at("badge-simulated").click()
        tab.at("time-advance-own").fill("明天")
        tab.at("time-advance-set").click()
        expect(tab.at("time-fault")).to_contain_text("请输入时长")
        tab.at("time-until-own").fill("2001-01-01T00:00")
        tab.at("time-until-set").click()
        expect(tab.at("time-fault")).to_contain_text("时间只能向前")
        tab.keep("time-chinese-dark")
        tab.at("time-resume").click()
        expect(other.at("badge-simulated")).not_to_contain_text("paused")


def test_a_refusal_of_the_server_is_shown(browser: Browser, world: Laptop) -> None:
    with window(browser, world.console.url) as tab:
        opened(tab)
        tab.at("time-advance-own").fill("400d")
        tab.at("time-advance-set").click()
        tab.at("time-ask-yes").click()
        expect(tab.at("time-fault")).to_contain_text("at most 366")
        expect(tab.at("time-advance-own")).to_have_value("400d")


def test_a_real_cluster_has_no_such_badge(browser: Browser, real: Sight) -> None:
    with window(browser, real.url) as tab:
        tab.open("/overview", "overview")
        expect(tab.at("badge-simulated")).to_have_count(0)
        tab.page.keyboard.press("t")
        expect(tab.at("time-panel")).to_have_count(0)
