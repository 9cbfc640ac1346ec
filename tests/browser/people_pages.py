"""Rows and keys of the page People, and an audit in memory."""

from __future__ import annotations

from msgspec import structs
from playwright.sync_api import Locator, expect
from tests.browser.chromium import Window
from tests.browser.signed_in import tab_to

from fairlead.model.records.audit import AuditFilter, AuditRow
from fairlead.model.records.rows import CredentialRecord


def row(tab: Window, key: str) -> Locator:
    return tab.page.locator(f'tr[data-key="{key}"]')


class MemoryTrail:
    """An audit of this process, which a page may read."""

    def __init__(self) -> None:
        self.rows: list[AuditRow] = []

    async def append_audit(self, row: AuditRow) -> int:
        self.rows.append(structs.replace(row, id=len(self.rows) + 1))
        return len(self.rows)

    async def audit_page(self, filter: AuditFilter, size: int, before: int = 0) -> list[AuditRow]:
        return self.rows[::-1][:size]

    async def count_audit(self, filter: AuditFilter) -> int:
        return len(self.rows)

    async def forget_audit(self, before: int) -> int:
        return 0

    async def add_credential(self, credential: CredentialRecord) -> None:
        """The page reads the cluster's own records."""

    async def revoke_credentials(self, at: int, *, name: str = "", user: str = "") -> int:
        return 0


def press(tab: Window, wanted: str, key: str = "Enter") -> None:
    """Reach a control with Tab, and press a key on it."""
    tab_to(tab, wanted)
    tab.page.keyboard.press(key)


def open_row(tab: Window, key: str) -> None:
    """Walk to a row of the page's table with the arrows, and open it."""
    expect(row(tab, key)).to_be_visible()
    tab.page.keyboard.press("j")
    for _ in range(20):
        if tab.page.evaluate("document.activeElement.dataset.key") == key:
            break
        tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
