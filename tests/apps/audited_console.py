"""A console with Anna and Olga, administrators, and Bob, a researcher, whose audit a test reads."""

from __future__ import annotations

from typing import Any

from tests.apps.running_console import Page
from tests.console.sign_in_parts import ANNA, BOB, FakeSignInApi, group, person

from fairlead.model.access import Identity
from fairlead.model.people.rows import UserRole
from fairlead.model.records.audit import AuditFilter

OLGA = person("olga", role=UserRole.ADMIN)


class AuditedConsole:
    """A call sends a request as a user, and returns the status and the answer."""

    def __init__(self, page: Page, store: Any) -> None:
        self.page, self.store = page, store

    async def __call__(self, who: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return await self.page.ask_as(who, method, path, body)

    async def audit(self) -> list[tuple[str, str, str]]:
        return [
            (each.action, str(each.result), f"{each.target.kind} {each.target.name}")
            async for each in self.store.audit_rows(AuditFilter())
        ]


def two_administrators() -> FakeSignInApi:
    """With the tokens of Anna, Olga and Bob."""
    api = FakeSignInApi((ANNA, OLGA, BOB), (group("a"),))
    api.owners["token-of-olga"] = Identity("system:serviceaccount:kube-ai:olga", "uid-olga")
    return api
