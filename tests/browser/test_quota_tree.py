"""Does "what if" on the page of the quota tree name the pods that would be admitted and evicted?
The numbers are those of the 40-core demo.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, expect
from tests.browser.chromium import OUTPUT, Window, window
from tests.console.quota_demo import crowded, demo, poor
from tests.kube.servers import Server, running

from fairlead.model.quota.tree import QuotaNode
from fairlead.wire.files.snapshot_file import SavedSnapshot, render_snapshot

pytestmark = pytest.mark.turns(2, 1)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The console over a saved cluster: a.1 and a.2 hold all 40 cores, and b.1, which has no
    guarantee, waits for 10.
    """
    yield from served(poor(), tmp_path_factory.mktemp("quota"))


def served(root: QuotaNode, folder: Path) -> Iterator[Server]:
    file = folder / "cluster.snapshot"
    file.write_bytes(render_snapshot(SavedSnapshot(crowded(root))))
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with running("console", f"--snapshot={file}", log=OUTPUT / "console-quota.log") as server:
        yield server


def fill(tab: Window, node: str, bound: str, text: str) -> None:
    tab.at(f"bound-{node}-cpu-{bound}").fill(text)


def test_a_raised_minimum_names_the_pods_that_go_and_come(
    browser: Browser, console: Server
) -> None:
    with window(browser, console.url) as tab:
        tab.open("/quota/tree", "quota-tree")
        tab.at("action-what-if").click()
        fill(tab, "root.b.1", "min", "10")
        expect(tab.at("what-if-sentence")).to_have_text("2 pods would be admitted, 2 evicted.")
        assert set(tab.column("what-if-leaves", "Running").items()) == {
            ("root.a.1", "4 → 3"),
            ("root.a.2", "4 → 3"),
            ("root.b.1", "0 → 2"),
        }
        assert sorted(tab.column("what-if-evicted", "Elastic Quota Name").values()) == [
            "root.a.1",
            "root.a.2",
        ]
        assert set(tab.column("what-if-admitted", "Pod")) == {"ns3/web-ns3-0", "ns3/web-ns3-1"}
        tab.keep("quota-what-if")
        tab.at("action-undo").click()
        expect(tab.at("what-if-effects")).to_have_count(0)
        expect(tab.at("bound-root.b.1-cpu-min")).to_have_value("0")


def test_a_tree_that_would_be_refused_gives_the_reason_at_its_cell(
    browser: Browser, console: Server
) -> None:
    with window(browser, console.url) as tab:
        tab.open("/quota/tree?whatif=1", "quota-tree")
        fill(tab, "root.a.1", "min", "11")
        expect(tab.at("what-if-effects").get_by_test_id("quota-faults")).to_contain_text(
            "root.a: children guarantee 21 cpu (root.a.1 11, root.a.2 10), more than its own min 20"
        )
        fill(tab, "root.a.1", "min", "lots")
        expect(tab.at("what-if-effects")).to_contain_text("BadShape")
        expect(tab.at("bound-root.a.1-cpu-min")).to_have_attribute("aria-invalid", "true")


def test_typing_in_a_cell_moves_no_row_and_tab_goes_to_the_next_cell(
    browser: Browser, console: Server
) -> None:
    with window(browser, console.url) as tab:
        tab.open("/quota/tree?whatif=1", "quota-tree")
        cell = tab.at("bound-root.a.1-cpu-min")
        cell.focus()
        tab.page.keyboard.type("jk")
        expect(cell).to_be_focused()
        expect(cell).to_have_value("10jk")
        tab.page.keyboard.press("Tab")
        expect(tab.at("bound-root.a.1-cpu-max")).to_be_focused()


def test_the_board_lists_waiting_pods_and_a_row_shows_the_numbers(
    browser: Browser, console: Server
) -> None:
    with window(browser, console.url) as tab:
        tab.open("/quota", "quota")
        assert tab.column("quota-waiting", "Reason") == {
            "ns1/web-ns1-4": "OverMax",
            "ns3/web-ns3-0": "WaitingForIdleQuota",
            "ns3/web-ns3-1": "WaitingForIdleQuota",
        }
        tab.at("table-quota-waiting").get_by_text("ns3/web-ns3-0").click()
        side = tab.at("side-panel")
        expect(side).to_contain_text("cpu asks 5; root 40/40 in use")
        expect(side).to_contain_text("+10")
        tab.keep("quota-waiting")
        tab.page.keyboard.press("Escape")
        expect(side).to_have_count(0)


WORDS = {"en-US": "over max by 5 cores", "zh-CN": "超出上限 5 核"}


@pytest.mark.parametrize("locale", WORDS)
def test_a_node_that_uses_more_than_its_max_shows_by_how_much(
    browser: Browser, tmp_path: Path, locale: str
) -> None:
    """20 of the 40 cores are used in root.a.1, whose max was lowered to 15. The table, the tree and
    its page show it, and no other place.
    """
    a, b = demo().children
    lowered = replace(a.children[0], max={"cpu": 15_000})
    for server in served(
        replace(demo(), children=(replace(a, children=(lowered, a.children[1])), b)), tmp_path
    ):
        with window(browser, server.url, locale) as tab:
            for path, page, table in (
                ("/quota", "quota", "quota-cpu"),
                ("/quota", "quota", "quota-tree"),
                ("/quota/tree", "quota-tree", "quota-tree"),
            ):
                tab.open(path, page)
                used = tab.column(
                    table,
                    "Used Quota"
                    if table == "quota-cpu"
                    else {"en-US": "Used", "zh-CN": "已用"}[locale],
                )
                assert used.pop("root.a.1").split("\n") == ["20", WORDS[locale]]
                assert used == {
                    "root": "40",
                    "root.a": "40",
                    "root.a.2": "20",
                    "root.b": "0",
                    "root.b.1": "0",
                    "root.b.2": "0",
                }
                tab.keep(f"quota-over-max-{table}-{locale}")


def test_a_broken_tree_is_reported(browser: Browser, tmp_path: Path) -> None:
    twice = demo().children[0].children[0]
    a, b = demo().children
    broken = QuotaNode("root", "root", "", demo().min, demo().max, children=(a, b, twice))
    for server in served(broken, tmp_path):
        with window(browser, server.url) as tab:
            tab.open("/quota", "quota")
            expect(tab.at("quota-faults")).to_contain_text("DuplicateName")
            expect(tab.at("sentence")).to_contain_text("The quota tree is invalid")


def test_the_tree_on_the_board_is_walked_by_keys_and_asks_what_if_in_place(
    browser: Browser, console: Server
) -> None:
    with window(browser, console.url) as tab:
        tab.open("/quota", "quota")
        grid = tab.page.get_by_role("treegrid")
        inner, leaf = grid.locator('tr[data-key="root.b"]'), grid.locator('tr[data-key="root.b.1"]')
        expect(leaf).to_have_attribute("aria-level", "3")
        leaf.focus()
        tab.page.keyboard.press("ArrowLeft")
        expect(inner).to_be_focused()
        tab.page.keyboard.press("ArrowLeft")
        expect(inner).to_have_attribute("aria-expanded", "false")
        expect(leaf).to_have_count(0)
        assert "fold=root.b" in tab.page.url
        tab.page.keyboard.press("ArrowRight")
        expect(inner).to_have_attribute("aria-expanded", "true")
        leaf.focus()
        tab.page.keyboard.press("Enter")
        expect(tab.at("leaf-waiting")).to_contain_text("ns3/web-ns3-1")
        tab.page.keyboard.press("Escape")
        expect(tab.at("leaf-waiting")).to_have_count(0)
        leaf.focus()
        tab.page.keyboard.press("ArrowRight")
        expect(tab.at("bounds-root.b.1-cpu")).to_be_focused()
        tab.page.keyboard.press("Enter")
        cell = tab.at("bound-root.b.1-cpu-min")
        expect(cell).to_be_focused()
        cell.fill("10")
        expect(tab.at("what-if-sentence")).to_have_text("2 pods would be admitted, 2 evicted.")
        expect(tab.at("panel-what-if")).to_contain_text("nothing has been written")
        tab.keep("quota-tree-in-place")
        tab.page.keyboard.press("Escape")
        expect(tab.at("what-if-effects")).to_have_count(0)
        expect(leaf).to_be_focused()
        expect(tab.at("bounds-root.b.1-cpu")).to_have_text("[ 0 , 20 ]")
