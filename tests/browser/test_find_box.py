"""Does the search box find everything in the cluster, in whatever order answers arrive? By
keyboard, with answers that are late, wrong or absent.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect
from tests.browser.chromium import Window, window
from tests.browser.sight import Sight, soon

pytestmark = pytest.mark.turns(2, 0)

SEARCH = "**/api/v1/search?*"
TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def opened(tab: Window, text: str) -> Locator:
    tab.open("/nodes", "nodes")
    tab.page.keyboard.press("Control+k")
    tab.page.keyboard.type(text)
    return tab.at("find-box").get_by_role("option")


def test_a_label_and_a_uid_lead_to_their_pods(browser: Browser, simulated: Sight) -> None:
    pods = simulated.kubectl.get("pods")
    held = next(
        each
        for each in pods
        if each["spec"].get("nodeName") and each["status"]["phase"] == "Running" and is_gpu(each)
    )
    name, uid = held["metadata"]["name"], held["metadata"]["uid"]
    key, value = next(iter(held["metadata"]["labels"].items()))
    with window(browser, simulated.url) as tab:
        options = opened(tab, uid)
        expect(options.first).to_contain_text(name)
        expect(options.first).to_contain_text(f"UID {uid}")
        tab.page.keyboard.press("Enter")
        expect(tab.at("side-panel").locator("h2")).to_have_text(
            f"{held['metadata']['namespace']}/{name}"
        )
        expect(
            opened(tab, f"{key}={value}").filter(has_text=f"label {key}={value}").first
        ).to_be_visible()


def is_gpu(pod: dict[str, Any]) -> bool:
    return any(
        "nvidia.com/gpu" in each.get("resources", {}).get("limits", {})
        for each in pod["spec"]["containers"]
    )


def hit(name: str, **more: object) -> dict[str, object]:
    found = {
        "kind": "node",
        "namespace": "",
        "name": name,
        "job": "",
        "node": name,
        "gpuIndex": None,
        "holdsGpu": False,
    }
    return {**found, "field": "name", "text": name, "piece": name, **more}


def answer(*hits: dict[str, object], total: int = 0) -> str:
    found = {
        "generatedAt": "2026-01-05T08:00:00Z",
        "stale": False,
        "version": "1",
        "warnings": [],
        "q": "",
        "leftOut": 0,
    }
    return json.dumps({**found, "total": total or len(hits), "items": hits})


def held_back(page: Page, pattern: str) -> Callable[[str], None]:
    """Holds requests back until the test decides their answers."""
    waiting: list[Route] = []
    page.route(pattern, lambda route: waiting.append(route))

    def let_go(body: str) -> None:
        soon(
            f"questions of {pattern}",
            lambda: bool(waiting) or page.evaluate("false"),
            lambda: True,
        )
        for route in waiting:
            route.fulfill(body=body, content_type="application/json")
        waiting.clear()

    return let_go


def test_what_is_chosen_stays_chosen_when_more_is_found_above_it(
    browser: Browser, simulated: Sight
) -> None:
    node = sorted(simulated.counts().nodes)[0]
    with window(browser, simulated.url) as tab:
        let_go = held_back(tab.page, SEARCH)
        options = opened(tab, node)
        command = options.filter(has_text=f"kubectl describe node {node}")
        expect(command).to_be_visible()
        while command.get_attribute("aria-selected") != "true":
            tab.page.keyboard.press("ArrowDown")
        before = options.all_inner_texts()
        let_go(answer(hit(f"a-{node}"), hit(f"b-{node}")))
        expect(options).to_have_count(len(before) + 2)
        expect(command).to_have_attribute("aria-selected", "true")
        assert [text for text in options.all_inner_texts() if text in before] == before, (
            "what was there keeps its order"
        )


def test_what_still_carries_the_text_stays_while_the_next_answer_comes(
    browser: Browser, simulated: Sight
) -> None:
    node = sorted(simulated.counts().nodes)[0]
    with window(browser, simulated.url) as tab:
        options = opened(tab, node[:-1])
        first = options.filter(has_text=node).first
        expect(first).to_be_visible()
        tab.page.evaluate(
            """name => {
                const box = document.querySelector('.hits');
                window.gone = 0;
                const look = () => { window.gone += box.textContent.includes(name) ? 0 : 1; };
                new MutationObserver(look).observe(box, { childList: true, subtree: true });
            }""",
            node,
        )
        tab.page.route("**/api/v1/**", lambda route: None)
        with tab.page.expect_request(f"**/api/v1/search?q={node}"):
            tab.page.keyboard.type(node[-1])
        tab.page.evaluate(TWO_FRAMES)
        expect(first).to_be_visible()
        tab.page.unroute_all(behavior="ignoreErrors")
        assert tab.page.evaluate("window.gone") == 0


def test_an_older_answer_never_comes_over_a_newer_one(browser: Browser, simulated: Sight) -> None:
    with window(browser, simulated.url) as tab:
        older, newer = (
            held_back(tab.page, "**/api/v1/search?q=zz"),
            held_back(tab.page, "**/api/v1/search?q=zz-1"),
        )
        with tab.page.expect_request("**/api/v1/search?q=zz"):
            options = opened(tab, "zz")
        with tab.page.expect_request("**/api/v1/search?q=zz-1"):
            tab.page.keyboard.type("-1")
        newer(answer(hit("zz-1-new"), total=40))
        expect(options).to_have_text(["zz-1-new"])
        expect(tab.at("find-more")).to_contain_text("39")
        older(answer(hit("zz-1-old"), hit("zz-0-old")))
        tab.page.evaluate(TWO_FRAMES)
        expect(options).to_have_text(["zz-1-new"])


def test_a_search_that_fails_is_one_quiet_line_beside_what_was_found(
    browser: Browser, simulated: Sight
) -> None:
    node = sorted(simulated.counts().nodes)[0]
    with window(browser, simulated.url) as tab:
        tab.page.route(
            SEARCH,
            lambda route: route.fulfill(
                status=404, content_type="application/json", body='{"code":"x","error":"it broke"}'
            ),
        )
        expect(opened(tab, node).first).to_contain_text(node)
        expect(tab.at("find-quiet")).to_have_text("Not everything could be searched: it broke")
        expect(tab.page.locator(".banner.broken")).to_have_count(0)


def test_the_box_stops_the_simulated_time_and_lets_it_go_on(
    browser: Browser, simulated: Sight
) -> None:
    badge = "badge-simulated"
    with window(browser, simulated.url) as tab:
        for text, paused in (("pause the", "true"), ("resume the", "false")):
            expect(opened(tab, text).first).to_contain_text("time")
            tab.page.keyboard.press("Enter")
            expect(tab.at("find-box")).to_be_hidden()
            expect(tab.at(badge)).to_have_attribute("data-paused", paused)
