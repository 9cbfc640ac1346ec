"""Is a cluster of 5,000 nodes with 8 GPUs each still shown fast? The budgets of
docs/spec/console.md#scale.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from msgspec import structs
from playwright.sync_api import Browser, Response, expect
from tests.browser.chromium import window
from tests.browser.layout import DOM_NODES, dom_nodes
from tests.browser.still_console import served
from tests.console.clusters import large_cluster, living_cluster
from tests.console.worlds import still_world
from tests.turns import in_turn
from tests.waiting import wait_until

from fairlead.model.quota.tree import QuotaNode

pytestmark = pytest.mark.turns(2, 0)

ANSWER_BYTES = 1_000_000
PAGE_ROWS = 50


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(still_world(large_cluster())) as address:
        yield address


def answers_until_rows(browser: Browser, url: str) -> dict[str, int]:
    """Path of each question to the API until the rows of the nodes board stand: the bytes of its
    answer.
    """
    answers: list[Response] = []
    with window(browser, url) as tab:
        tab.page.on("response", lambda answer: answers.append(answer))
        tab.page.goto(f"{url}/nodes")
        tab.at("table-nodes").locator("tbody tr[data-key]").first.wait_for()
        return {
            path: len(answer.body())
            for answer in answers
            if (path := urlsplit(answer.url).path).startswith("/api/v1/nodes")
        }


def test_the_nodes_board_asks_no_more_of_a_large_cluster(browser: Browser, url: str) -> None:
    """How soon its rows stand is measured in bench/console.py."""
    with served(still_world(living_cluster())) as small:
        of_a_small_one = answers_until_rows(browser, small)
    answers = answers_until_rows(browser, url)
    assert answers.keys() == of_a_small_one.keys() and answers
    assert max(answers.values()) < ANSWER_BYTES, answers


BOARDS = [
    ("overview", "overview"),
    ("nodes", "nodes"),
    ("gpus", "holders"),
    ("gpus?by=user", "holders"),
    ("devices", "devices"),
    ("jobs", "jobs"),
    ("mine?namespace=team-00", "mine"),
    ("quota/tree", "quota-tree"),
    ("health", "health"),
    ("nodes/gpu-00001", "node"),
    ("jobs/team-00/pytorchjob/job-0000", "job"),
]


@pytest.mark.parametrize(("path", "board"), in_turn(BOARDS, 2))
def test_no_board_fills_the_document(browser: Browser, url: str, path: str, board: str) -> None:
    with window(browser, url, width=1440, height=1400) as tab:
        tab.open(f"/{path}", board)
        tab.page.wait_for_timeout(1500)
        found = dom_nodes(tab)
        print(f"{found} nodes")
        assert found < DOM_NODES
        tab.keep(f"large-{board}")


def test_a_group_of_five_hundred_pods_unfolds_in_place_by_keyboard(
    browser: Browser, url: str
) -> None:
    with window(browser, url, width=1440, height=1400) as tab:
        tab.open("/gpus?by=namespace", "holders")
        rows = tab.at("table-holders-namespace").locator("tr[data-row]")
        first, second, key = rows.first, rows.nth(1), tab.page.keyboard
        expect(first).to_have_attribute("aria-expanded", "false")
        other = second.get_attribute("data-key") or ""
        first.focus()
        for opens, folds in (("Enter", "Enter"), (" ", " "), ("ArrowRight", "ArrowLeft")):
            key.press(opens)
            expect(first).to_have_attribute("aria-expanded", "true")
            expect(second).to_contain_text("-worker-")
            expect(second).to_have_attribute("aria-level", "2")
            expect(first).to_be_focused()
            key.press(folds)
            expect(first).to_have_attribute("aria-expanded", "false")
            expect(second).to_have_attribute("data-key", other)
        key.press("Enter")
        expect(second).to_contain_text("-worker-")
        assert dom_nodes(tab) < DOM_NODES
        tab.keep("large-holders-unfolded")
        last = "50 of 500 shown. Show all"

        def is_at_the_last() -> bool:
            """Moves one row further with each look; a slow machine may still be drawing the next
            one.
            """
            if last in tab.page.evaluate("document.activeElement.textContent"):
                return True
            key.press("j")
            return False

        wait_until("the last row has the focus", is_at_the_last, 60.0, 0.01)
        expect(tab.page.get_by_role("link", name=last)).to_be_visible()
        key.press("Enter")
        expect(tab.at("table-holders")).to_be_visible()
        assert "namespace=team-" in tab.page.url


def test_a_quota_tree_of_a_thousand_leaves_does_not_fill_it_either(browser: Browser) -> None:
    bounds = {
        "cpu": 1000,
        "memory": 1 << 30,
        "nvidia.com/gpu": 1,
        "aliyun.com/gpu-mem": 1,
        "aliyun.com/gpu": 1,
    }
    leaves = tuple(
        QuotaNode(f"leaf-{n:04}", f"root.leaf-{n:04}", "root", bounds, bounds, (f"team-{n:04}",))
        for n in range(1000)
    )
    whole = {name: 1000 * amount for name, amount in bounds.items()}
    tree = QuotaNode("root", "root", min=whole, max=whole, children=leaves)
    with (
        served(still_world(structs.replace(living_cluster(), quota=tree))) as large,
        window(browser, large, width=1440, height=1400) as tab,
    ):
        tab.open("/quota", "quota")
        expect(tab.at("table-quota-tree").locator("tr[data-row]").first).to_be_visible()
        expect(tab.at("table-quota-cpu").locator("tr[data-row]").first).to_be_visible()
        # tables that scrolled out of sight leave the document a moment later
        wait_until(
            lambda: f"{dom_nodes(tab)} nodes are fewer",
            lambda: dom_nodes(tab) < DOM_NODES,
            30.0,
            0.1,
        )
        tab.keep("large-quota")


def test_sorting_asks_once_for_one_page(browser: Browser, url: str) -> None:
    """How soon it answers is measured in bench/console.py."""
    questions: list[str] = []
    with window(browser, url) as tab:
        tab.open("/nodes", "nodes")
        tab.page.on("request", lambda request: questions.append(request.url))
        for column in ("GPU Utilization", "Used GPU Memory", "Allocated GPUs"):
            head = tab.at("table-nodes").locator("thead th").filter(has_text=column).first
            questions.clear()
            with tab.page.expect_response(
                lambda answer: "/api/v1/nodes?" in answer.url and "sort=" in answer.url
            ) as sorted_rows:
                head.get_by_role("button").click()
            body = sorted_rows.value.body()
            assert len(json.loads(body)["items"]) == PAGE_ROWS and len(body) < ANSWER_BYTES
            assert [each for each in questions if "sort=" in each] == [sorted_rows.value.url]
