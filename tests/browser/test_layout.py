"""Is each page whole at any width, in both languages and themes? No sideways scrolling, no cut
text; contrast, names and headings are right.

`axe-core` judges what it knows. The rest (a control outside the window or cut by its box, blocks in
another order than they are seen) is computed from the browser's own boxes. A run tries one of the
twelve looks, chosen at random; `FAIRLEAD_TURN=all` tries all.
"""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.accessibility import violations
from tests.browser.chromium import window
from tests.browser.layout import SIDEWAYS, cut_texts, settle
from tests.browser.sight import Sight
from tests.turns import in_turn

WIDTHS: Final = (320, 390, 640, 1024, 1440, 2560)
"""640: a window of 1280 at 200 % zoom."""
LOOKS: Final = tuple(
    (world, locale, scheme)
    for world in ("default", "faults", "empty")
    for locale in ("en-US", "zh-CN")
    for scheme in ("light", "dark")
)
OTHER_ORDER: Final = """() => {
    const found = [];
    for (const box of document.querySelectorAll('main.page, main.page .lead, main.page .grid')) {
        const parts = [...box.children].map(part => [part, part.getBoundingClientRect()])
            .filter(([part, at]) => at.height > 0 && getComputedStyle(part).position !== 'fixed');
        for (let i = 1; i < parts.length; i++) {
            const [before, upper] = parts[i - 1], [after, lower] = parts[i];
            if (lower.top < upper.top - 40 && lower.left <= upper.left)
                found.push(`.${after.className} stands above .${before.className}, `
                    + 'which comes before it');
        }
    }
    return found;
}"""


def pages_of(sight: Sight) -> list[tuple[str, str]]:
    """(address, page) of all pages; pages of details show the first object that exists."""
    boards = [
        ("/overview", "overview"),
        ("/nodes", "nodes"),
        ("/jobs", "jobs"),
        ("/quota", "quota"),
        ("/quota/tree", "quota-tree"),
    ]
    boards += [
        ("/devices", "devices"),
        ("/serving", "serving"),
        ("/gpus", "holders"),
        ("/gpus?by=owner", "holders"),
        ("/gpus?by=user&unfold=//", "holders"),
        ("/mine", "mine"),
        ("/health", "health"),
    ]
    nodes, jobs = sorted(sight.node_names()), sorted(sight.jobs())
    details = [(f"/nodes/{name}", "node") for name in nodes[:1]]
    details += [
        (f"/jobs/{key}{tab}", "job") for key in jobs[:1] for tab in ("", "?tab=logs", "?tab=yaml")
    ]
    panels = [(f"/nodes?open={name}", "nodes") for name in nodes[:1]] + [
        (f"/jobs?open={key}", "jobs") for key in jobs[:1]
    ]
    spaces = sorted({key.split("/")[0] for key in jobs})
    return (
        boards + details + panels + [(f"/mine?namespace={space}", "mine") for space in spaces[:1]]
    )


def file_word(address: str) -> str:
    """An address as part of a file's name."""
    return address.strip("/").replace("/", "-").replace("?", "-")[:60]


@pytest.mark.parametrize(("world", "locale", "scheme"), in_turn(LOOKS, 12))
def test_every_page_is_whole_at_every_width(
    browser: Browser, request: pytest.FixtureRequest, world: str, locale: str, scheme: str
) -> None:
    sight: Sight = request.getfixturevalue({"default": "simulated"}.get(world, world))
    wrong: list[str] = []
    with window(browser, sight.url, locale, 1440, 1400, scheme) as tab:
        for address, page in pages_of(sight):
            tab.open(address, page)
            settle(tab)
            wrong += [f"{address}: {each}" for each in violations(tab)]
            for width in WIDTHS:
                tab.page.set_viewport_size({"width": width, "height": 1000})
                settle(tab)
                wrong += [
                    f"{address} at {width}: {each}"
                    for each in tab.page.evaluate(SIDEWAYS) + tab.page.evaluate(OTHER_ORDER)
                ]
                if width in (390, 1440):
                    tab.keep(f"look-{world}-{locale}-{scheme}-{width}-{file_word(address)}")
            tab.page.set_viewport_size({"width": 1440, "height": 1400})
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("world", "locale"),
    in_turn(tuple((world, locale) for world, locale, scheme in LOOKS if scheme == "light"), 6),
)
def test_no_text_is_cut(
    browser: Browser, request: pytest.FixtureRequest, world: str, locale: str
) -> None:
    sight: Sight = request.getfixturevalue({"default": "simulated"}.get(world, world))
    wrong: list[str] = []
    with window(browser, sight.url, locale, 1440, 1000) as tab:
        for address, page in [*pages_of(sight), ("/quota/tree?whatif=1", "quota-tree")]:
            if "tab=" in address:
                continue  # code and logs scroll
            tab.open(address, page)
            expect(tab.page.locator("main [data-testid=state-loading]").first).to_have_count(0)
            for width in (1280, 1440, 1920):
                tab.page.set_viewport_size({"width": width, "height": 1000})
                settle(tab)
                wrong += [f"{address} at {width}: {each}" for each in cut_texts(tab)]
                tab.keep(f"cut-{world}-{locale}-{width}-{file_word(address)}")
            if address == "/devices" and world != "empty":
                tab.page.set_viewport_size({"width": 1440, "height": 1000})
                settle(tab)
                assert tab.at("table-devices").evaluate(
                    "box => box.scrollWidth <= box.clientWidth"
                ), "columns are out of sight at 1440"
    assert not wrong, "\n".join(dict.fromkeys(wrong))


@pytest.mark.parametrize(("locale", "scheme"), in_turn([("en-US", "dark"), ("zh-CN", "light")], 2))
def test_what_opens_over_a_page_is_whole_too(
    browser: Browser, simulated: Sight, locale: str, scheme: str
) -> None:
    """The search box with the server's hits, and the commands of an object."""
    node = sorted(simulated.node_names())[0]
    wrong: list[str] = []
    with window(browser, simulated.url, locale, 1440, 1000, scheme) as tab:
        for width in (320, 390, 1440):
            tab.page.set_viewport_size({"width": width, "height": 1000})
            tab.open(f"/nodes/{node}", "node")
            settle(tab)
            tab.at("action-command-node").click()
            expect(tab.at("equal-commands").get_by_role("button").first).to_be_focused()
            wrong += [
                f"commands at {width}: {each}"
                for each in tab.page.evaluate(SIDEWAYS) + violations(tab)
            ]
            tab.keep(f"look-commands-{locale}-{scheme}-{width}")
            tab.page.keyboard.press("Escape")
            tab.page.keyboard.press("/")
            tab.page.keyboard.type("job-name=")
            expect(tab.at("find-more")).to_be_visible()
            wrong += [
                f"box at {width}: {each}" for each in tab.page.evaluate(SIDEWAYS) + violations(tab)
            ]
            tab.keep(f"look-box-{locale}-{scheme}-{width}")
    assert not wrong, "\n".join(wrong)
