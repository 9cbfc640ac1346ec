"""Drives the operating system's Chromium, and records everything that a page of Fairlead's must
never do.

Every window records requests to other hosts, errors in the console, policy reports and answers from
500 up. `complaints` must be empty at the end of each test, whatever the test checks.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Locator,
    Page,
    Playwright,
    Request,
    Response,
    expect,
    sync_playwright,
)
from playwright.sync_api import (
    Error as PlaywrightError,
)
from tests.browser.without_netlink import launcher

OUTPUT = Path(__file__).resolve().parents[2] / "test-output" / "browser"
NAMES = ("chromium-headless-shell", "chromium", "google-chrome")
SCREENSHOTS = "FAIRLEAD_SCREENSHOTS"
"""The variable with which a run saves all screenshots; without it, those of failed tests alone."""
PATIENCE_MS = 45_000
"""On a machine with other work a page of a new laptop has taken 20 s."""
LOOKS = (("en-US", "light"), ("en-US", "dark"), ("zh-CN", "dark"), ("zh-CN", "light"))
"""Locales and schemes. Every second one has both locales and both schemes, as a part of two has
(`in_turn`).
"""
WIDE_AND_NARROW = tuple(
    (locale, scheme, {"light": 1280, "dark": 480}[scheme]) for locale, scheme in LOOKS
)
HARMLESS = ("Failed to load resource",)
"""The browser's own line about an answer from 400 up; answers are judged by their status."""


def chromium_path(playwright: Playwright) -> str:
    """`CHROMIUM_PATH`, then the machine's, then Playwright's own; "" when there is none."""
    named = os.environ.get("CHROMIUM_PATH", "")
    if named:
        return named
    found = next((path for name in NAMES if (path := shutil.which(name))), "")
    own = playwright.chromium.executable_path
    return found or (own if Path(own).exists() else "")


@contextmanager
def running_chromium(folder: Path) -> Iterator[Browser]:
    """Chromium, with what it keeps in the folder. Skips the test where there is none."""
    with sync_playwright() as playwright:
        path = chromium_path(playwright)
        if not path:
            pytest.skip("no Chromium: install chromium-headless-shell or set CHROMIUM_PATH")
        program = launcher(path, folder)
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Window:
    """One tab at one console. `complaints`: what it did that no page of Fairlead's may do."""

    def __init__(self, page: Page, base: str) -> None:
        self.page = page
        self.base = base
        self.complaints: list[str] = []
        page.on("request", self._receive_request)
        page.on("response", self._receive_response)
        page.on("console", self._receive_console)
        page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))

    def open(self, path: str, page_id: str) -> None:
        """Open a board and wait until its summary sentence shows that it has data. (Panels out of
        sight keep their skeletons.)
        """
        self.page.goto(f"{self.base}{path}")
        expect(self.at(f"page-{page_id}")).to_be_visible()
        expect(self.at("sentence")).to_be_visible()

    def at(self, test_id: str) -> Locator:
        return self.page.get_by_test_id(test_id)

    def keep(self, name: str) -> None:
        """Save a screenshot under test-output, for people to look at, if the run asks for it."""
        if os.environ.get(SCREENSHOTS):
            self._save(name)

    def keep_failure(self) -> None:
        """Save what a failed test saw last, under the test's name; nothing if the page is gone."""
        test = os.environ.get("PYTEST_CURRENT_TEST", "unknown").split("::")[-1]
        with contextlib.suppress(PlaywrightError):
            self._save("failed-" + re.sub(r"[^a-zA-Z0-9]+", "-", test.split(" ")[0])[:150])

    def _save(self, name: str) -> None:
        OUTPUT.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=OUTPUT / f"{name}.png", full_page=True, timeout=PATIENCE_MS)

    def column(self, table: str, head: str) -> dict[str, str]:
        """Row name -> text of the column under a head (given by its beginning), of all rows. The
        table is scrolled, because only visible rows are in the document.
        """
        box = self.at(f"table-{table}")
        # the sentence may be visible while the rows are still a skeleton
        expect(box.locator("thead th").first).to_be_visible()
        heads = [
            text or ""
            for text in box.locator("thead th").evaluate_all(
                "cells => cells.map(cell => cell.title)"
            )
        ]
        names = [index for index, text in enumerate(heads) if text.startswith(head)]
        assert names, f"no column `{head}` among {heads}"
        return {key: row[names[0]] for key, row in box.evaluate(EVERY_ROW)}

    def _receive_request(self, request: Request) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.complaints.append(f"request to a stranger: {request.url}")

    def _receive_response(self, response: Response) -> None:
        if response.status >= 500:
            self.complaints.append(f"status {response.status}: {response.url}")

    def _receive_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(HARMLESS):
            self.complaints.append(f"console {message.type}: {message.text}")


EVERY_ROW = """async box => {
    const rows = new Map();
    const painted = () => new Promise(done =>
        requestAnimationFrame(() => requestAnimationFrame(done)));
    for (let top = 0; ; top += box.clientHeight / 2) {
        box.scrollTop = top;
        await painted();
        for (const row of box.querySelectorAll('tbody tr[data-key]'))
            rows.set(row.dataset.key, [...row.cells].map(cell => cell.innerText.trim()));
        if (top >= box.scrollHeight - box.clientHeight) break;
    }
    box.scrollTop = 0;
    return [...rows];
}"""


@contextmanager
def window(
    browser: Browser,
    base: str,
    locale: str = "en-US",
    width: int = 1280,
    height: int = 900,
    scheme: str = "light",
) -> Iterator[Window]:
    """A fresh tab (with its own storage) in a language. At its end `complaints` must be empty.

    The screenshot of a test that fails is saved in any case.
    """
    context = browser.new_context(
        locale=locale, viewport={"width": width, "height": height}, color_scheme=scheme
    )  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    tab = Window(context.new_page(), base)
    try:
        yield tab
        assert tab.complaints == [], tab.complaints
    except BaseException:
        tab.keep_failure()
        raise
    finally:
        context.close()
