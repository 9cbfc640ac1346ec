"""Pages after the sign-in, and their keys."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.browser.chromium import Window


def focus_of(tab: Window) -> str:
    """What has the focus: its test id, its label, or its text."""
    found = tab.page.evaluate(
        """() => { const at = document.activeElement; return at.dataset.testid
        || at.labels?.[0]?.textContent || at.ariaLabel || at.innerText; }"""
    )
    return str(found)


def tab_to(tab: Window, wanted: str, key: str = "Tab") -> None:
    """Press Tab until `wanted` has the focus, as a user without a mouse does."""
    for _ in range(60):
        if focus_of(tab) == wanted:
            return
        tab.page.keyboard.press(key)
    raise AssertionError(f"`{wanted}` is not reached with {key}; the focus is on {focus_of(tab)}")


def signed_in(tab: Window, address: str, token: str, path: str, page_id: str) -> None:
    tab.page.goto(f"{address}{path}")
    tab.page.locator("input[type=password]").first.fill(token)
    tab.page.keyboard.press("Enter")
    expect(tab.at(f"page-{page_id}")).to_be_visible()
