"""One job's page in a browser: its life, its tabs by keyboard,
its log beside what kubectl shows.
"""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, expect
from tests.browser.chromium import window
from tests.browser.layout import DOM_NODES, dom_nodes
from tests.browser.sight import Sight, soon


def test_a_log_is_the_one_that_kubectl_shows_and_tabs_go_by_keyboard(
    browser: Browser, simulated: Sight
) -> None:
    key = next(key for key, word in sorted(simulated.jobs().items()) if word == "Running")
    namespace, _, name = key.split("/")
    with window(browser, simulated.url) as tab:
        tab.open(f"/jobs/{key}?tab=logs", "job")
        lines = tab.at("log").locator(".line")
        pod = tab.at("log-instance").input_value()
        last = lambda: simulated.kubectl.run("logs", "-n", namespace, pod, "--tail=1").strip()  # noqa: E731
        soon("the last line", lambda: lines.last.inner_text().strip(), last)
        expect(tab.at("log-state")).to_have_text("New lines appear as they are written.")
        tab.page.get_by_label("Search this log").fill(lines.first.inner_text().strip().upper())
        expect(tab.at("log-found")).to_contain_text("1 of ")
        expect(tab.page.locator("[data-found=here]")).to_have_count(1)
        tab.page.get_by_label("Wrap").check()
        expect(lines.first).to_be_visible()
        assert dom_nodes(tab) < DOM_NODES
        tab.keep("job-logs")

        tab.page.get_by_role("tab", name="Logs").focus()
        tab.page.keyboard.press("ArrowRight")
        expect(tab.page.get_by_role("tab", name="Charts")).to_be_focused()
        tab.page.keyboard.press("ArrowRight")
        expect(tab.at("job-manifest")).to_contain_text(f"name: {name}")
        assert "managedFields" not in tab.at("job-manifest").inner_text()
        assert parse_qs(urlsplit(tab.page.url).query)["tab"] == ["yaml"]
        expect(tab.at("job-life")).to_contain_text("Running")


def test_an_instance_that_does_not_exist_is_reported_in_both_languages(
    browser: Browser, simulated: Sight
) -> None:
    key = next(key for key, word in sorted(simulated.jobs().items()) if word == "Running")
    for locale, words in (
        ("en-US", "Instance <b>gone</b> no longer exists."),
        ("zh-CN", "实例 <b>gone</b> 已不存在。"),
    ):
        with window(browser, simulated.url, locale) as tab:
            tab.open(f"/jobs/{key}?tab=logs&instance=%3Cb%3Egone%3C%2Fb%3E", "job")
            expect(tab.at("log-state")).to_have_text(words)


def test_a_job_that_runs_well_has_the_events_that_kubectl_shows_and_its_images_in_its_life(
    browser: Browser, simulated: Sight
) -> None:
    pulled = {(each["namespace"], each["name"]) for each in pulled_pods(simulated)}
    for key in sorted(key for key, word in simulated.jobs().items() if word == "Running"):
        namespace, kind, name = key.split("/")
        mine = {each for each in pulled if each[0] == namespace and each[1].startswith(f"{name}-")}
        if mine:
            break
    else:
        raise AssertionError(
            "no image of a running job was pulled within the hour: the test shows nothing"
        )
    with window(browser, simulated.url) as tab:
        tab.open(f"/jobs/{namespace}/{kind}/{name}?tab=events", "job")
        body = tab.page.locator("#tab-body")
        expect(body).to_contain_text("Pulled")
        expect(body.get_by_test_id("state-empty")).to_have_count(0)
        for _, pod in mine:
            expect(body).to_contain_text(pod)


def pulled_pods(sight: Sight) -> list[dict[str, str]]:
    return [
        each["involvedObject"] for each in sight.kubectl.get("events") if each["reason"] == "Pulled"
    ]
