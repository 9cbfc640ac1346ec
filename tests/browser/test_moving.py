"""Does a board keep its state in the address, and follow the cluster by itself? Filter, sort,
reload, Back, change, markup.
"""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, expect
from tests.browser.chromium import Window, window
from tests.browser.made_objects import pytorch_job, warning
from tests.browser.sight import Sight, soon

MARKUP = "<img src=x onerror=\"document.title='taken'\">"
CHANGE_SECONDS = 45.0
"""The specification allows 3 s (docs/spec/console.md#scale); a busy machine takes longer."""


def query(tab: Window) -> dict[str, list[str]]:
    return parse_qs(urlsplit(tab.page.url).query)


def in_table(tab: Window, table: str = "nodes") -> list[str]:
    keys: list[str] = (
        tab.at(f"table-{table}")
        .locator("tbody tr[data-key]")
        .evaluate_all("rows => rows.map(row => row.dataset.key)")
    )
    return keys


def test_a_filter_stands_in_the_address_and_survives_reload_and_back(
    browser: Browser, sight: Sight
) -> None:
    with window(browser, sight.url, height=1400) as tab:
        tab.open("/nodes", "nodes")
        expect(tab.at("table-nodes").locator("tbody tr[data-key^='gpu']").first).to_be_visible()
        everybody = in_table(tab)
        one = next(name for name in everybody if name.startswith("gpu"))
        tab.at("filter-q").fill(one)
        soon(
            "the filtered table",
            lambda: in_table(tab),
            lambda: [name for name in everybody if one in name],
        )
        assert query(tab)["q"] == [one]
        tab.page.reload()
        soon(
            "the table after a reload",
            lambda: in_table(tab),
            lambda: [name for name in everybody if one in name],
        )
        expect(tab.at("filter-q")).to_have_value(one)
        tab.page.go_back()
        soon("the table after Back", lambda: in_table(tab), lambda: everybody)
        assert "q" not in query(tab)
        expect(tab.at("filter-q")).to_have_value("")


def test_the_filter_of_document_000_chooses_nodes(browser: Browser, sight: Sight) -> None:
    names = sorted(name for name in sight.counts().nodes)[:2]
    with window(browser, sight.url, height=1400) as tab:
        tab.open(f"/nodes?gpu_node={names[0]}&gpu_node={names[1]}", "nodes")
        soon("two nodes", lambda: in_table(tab), lambda: names)


def test_a_click_on_a_head_sorts_and_is_announced(browser: Browser, sight: Sight) -> None:
    with window(browser, sight.url, height=1400) as tab:
        tab.open("/nodes", "nodes")
        head = tab.at("table-nodes").locator("thead th").filter(has_text="Total GPUs").first
        for direction in ("descending", "ascending"):
            head.get_by_role("button").click()
            expect(head).to_have_attribute("aria-sort", direction)
            soon(
                f"{direction} order",
                lambda: totals(tab),
                lambda d=direction: sorted(totals(tab), reverse=d == "descending"),
            )  # type: ignore[misc]
        assert query(tab)["sort"] == ["gpusTotal"]
        tab.page.reload()
        expect(head).to_have_attribute("aria-sort", "ascending")


def totals(tab: Window) -> list[int]:
    return [int(text) for text in tab.column("nodes", "Total GPUs").values() if text.isdigit()]


def test_a_count_of_jobs_leads_to_the_filtered_list(browser: Browser, sight: Sight) -> None:
    with window(browser, sight.url, height=1400) as tab:
        tab.open("/overview", "overview")
        tab.at("jobs-failed").click()
        expect(tab.at("page-jobs")).to_be_visible()
        assert query(tab)["job_status"] == ["Failed"]
        soon(
            "failed jobs",
            lambda: (
                {text.split()[0] for text in tab.column("jobs", "Job Status").values()}
                | {len(in_table(tab, "jobs"))}
            ),
            lambda: {"Failed", sight.job_counts()["Failed"]},
        )


def test_the_top_links_of_document_000_lead_to_the_boards(
    browser: Browser, simulated: Sight
) -> None:
    with window(browser, simulated.url) as tab:
        tab.open("/overview", "overview")
        for link, page in (("Nodes", "nodes"), ("TrainingJobs", "jobs"), ("Quota", "quota")):
            tab.page.get_by_role("banner").get_by_role("link", name=link, exact=True).click()
            expect(tab.at(f"page-{page}")).to_be_visible()


def test_a_new_job_appears_by_itself_and_moves_nothing(browser: Browser, simulated: Sight) -> None:
    name = "appears-by-itself"
    with window(browser, simulated.url, height=700) as tab:
        tab.open("/jobs?size=500", "jobs")
        expect(tab.at("table-jobs").locator("tbody tr[data-key]").first).to_be_visible()
        tab.page.wait_for_timeout(2500)  # the first hints
        tab.page.mouse.wheel(0, 120)
        tab.page.wait_for_timeout(300)
        scrolled = tab.page.evaluate("scrollY")
        simulated.kubectl.apply([pytorch_job(name)])
        try:
            tab.page.get_by_text(name, exact=True).first.wait_for(
                state="attached", timeout=CHANGE_SECONDS * 1000
            )
            assert tab.page.evaluate("scrollY") == scrolled
        finally:
            simulated.kubectl.delete("pytorchjob", name, "-n", "vision")
        expect(tab.page.get_by_text(name, exact=True)).to_have_count(0)


def test_markup_from_the_cluster_is_text(browser: Browser, sight: Sight) -> None:
    with warning(sight, "markup", "Markup", MARKUP), window(browser, sight.url, height=2400) as tab:
        tab.open("/overview", "overview")
        expect(tab.page.get_by_text(MARKUP, exact=False).first).to_be_visible()
        assert tab.page.title() != "taken"
        assert tab.page.locator("img[src=x]").count() == 0


def test_charts_draw_and_have_a_table(browser: Browser, simulated: Sight) -> None:
    with window(browser, simulated.url, height=3000) as tab:
        tab.open("/nodes", "nodes")
        for title in (
            "GPU Duty Cycle",
            "GPU Memory Usage",
            "GPU Memory Usage Percentage",
            "Allocated GPUs Per Node",
            "GPU Number Per Node",
        ):
            expect(tab.page.get_by_role("heading", name=title, exact=True)).to_be_visible()
        expect(tab.page.locator("canvas").nth(1)).to_be_visible()
        tab.keep("simulated-node-charts")
