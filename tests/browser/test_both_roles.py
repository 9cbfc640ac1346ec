"""Every page as an administrator and as a researcher sees it: accessible in both themes, Chinese in
Chinese, and both roles' flows by keyboard alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from msgspec import structs
from playwright.sync_api import Browser, expect
from tests.apps.still_components import StillComponents
from tests.apps.submit_forms import FORMS
from tests.apps.tree_writes import FakeWrites
from tests.browser.accessibility import SERIOUS, violations
from tests.browser.chromium import window
from tests.browser.layout import SIDEWAYS, settle
from tests.browser.people_pages import MemoryTrail, open_row, press
from tests.browser.signed_in import signed_in, tab_to
from tests.browser.still_console import served
from tests.browser.usage_world import ledger_of
from tests.console.clusters import living_cluster
from tests.console.data_parts import MemoryRecords, StillData, claim
from tests.console.people_parts import MemoryPeople, member, team
from tests.console.sign_in_parts import FakeSignInApi, Parts
from tests.console.worlds import still_world
from tests.turns import in_turn

from fairlead.model.people.rows import BoundRole, GroupStatus, UserRole

BOARDS: Final = Path(__file__).resolve().parents[2] / "web" / "src" / "app" / "boards.ts"
SPACE: Final = "team-a"
"""The namespace of the jobs of `living_cluster`."""
LOOKS: Final = tuple(
    (role, locale, scheme)
    for role in ("anna", "bob")
    for locale in ("zh-CN", "en-US")
    for scheme in ("dark", "light")
)
MORE: Final = (
    "/me",
    "/quota/tree",
    "/quota/tree?whatif=1",
    "/nodes/gpu-1",
    f"/jobs/{SPACE}/pytorchjob/bert",
    f"/jobs/{SPACE}/mpijob/old?tab=cost",
    "/jobs?deleted=yes",
    "/usage?by=job",
    "/nodes?open=gpu-1",
    "/users?open=bob",
    "/groups?open=a",
    "/nowhere",
)
"""Beside the boards of the menu."""
ENGLISH: Final = """() => {
    const words = /\\b[A-Za-z]{2,}(?:[ ,]+[a-z]{2,}){2,}/, found = [];
    for (const element of document.querySelectorAll('body *')) {
        if (element.closest('script, noscript, style, code, pre, .mono, svg, [lang=en]')) continue;
        const own = [...element.childNodes].filter(node => node.nodeType === 3)
            .map(node => node.textContent).join(' ');
        const named = ['aria-label', 'title', 'placeholder']
            .map(each => element.getAttribute(each));
        for (const text of [own, ...named])
            if (text && words.test(text)) found.push(text.trim().slice(0, 120));
    }
    return [...new Set(found)];
}"""
"""Three English words in a row are a sentence that nothing has translated."""


def pages() -> list[str]:
    menu = re.findall(r'path: "(/[a-z]+)"', BOARDS.read_text(encoding="utf-8"))
    assert len(menu) >= 12
    return [*menu, *MORE]


class Writes(FakeWrites):
    """Serves every kind of job."""

    async def served(self, group: str, plural: str) -> tuple[str, ...]:
        return ("v1",)


@pytest.fixture
def writes() -> Writes:
    return Writes()


@pytest.fixture
def still(writes: Writes) -> Iterator[str]:
    """A cluster that stands still; Anna is an administrator, and Bob works in one namespace."""
    bound = BoundRole(f"bob:{SPACE}:fairlead-researcher", SPACE, "fairlead-researcher")
    shared = BoundRole("bob:clusterRole:x", "", "fairlead-researcher-cluster")
    bob = member("bob", "a")
    status = structs.replace(bob.status, namespaces=(SPACE,), bindings=(bound, shared))
    users = (member("anna", role=UserRole.ADMIN), structs.replace(bob, status=status))
    groups = (structs.replace(team("a"), status=GroupStatus("root.a", (SPACE,))), team("b"))
    people = MemoryPeople(users, groups)
    world = still_world(living_cluster())
    components = StillComponents()
    world = structs.replace(
        world,
        people=people,
        writes=writes,
        data=StillData(claim("raw")),
        operations=MemoryRecords(),
        components=lambda: components,
    )
    desk = Parts(FakeSignInApi(users, groups), records=MemoryTrail()).desk()
    with served(world, desk, forms=FORMS, ledger=ledger_of()) as address:
        yield address


@pytest.mark.parametrize(("role", "locale", "scheme"), in_turn(LOOKS, 8))
def test_every_page_of_each_role_is_accessible_and_in_its_language(
    still: str, browser: Browser, role: str, locale: str, scheme: str
) -> None:
    wrong: list[str] = []
    with window(browser, still, locale, 1440, 1000, scheme) as tab:
        signed_in(tab, still, f"token-of-{role}", "/me", "access")
        for address in pages():
            tab.page.goto(f"{still}{address}")
            expect(tab.page.locator("main.page:visible").first).to_be_visible()
            settle(tab)
            wrong += [f"{address}: {each}" for each in violations(tab, *SERIOUS)]
            wrong += [f"{address}: {each}" for each in tab.page.evaluate(SIDEWAYS)]
            if locale == "zh-CN":
                wrong += [f"{address}: English: {each}" for each in tab.page.evaluate(ENGLISH)]
            name = re.sub(r"[^a-z0-9-]+", "-", address.strip("/"))
            tab.keep(f"role-{role}-{locale}-{scheme}-{name}")
    assert not wrong, "\n".join(wrong)


def test_a_researcher_works_by_keyboard_alone(still: str, writes: Writes, browser: Browser) -> None:
    """Signs in, stops an own job, reads what is allowed, gets a token and revokes it, signs out."""
    with window(browser, still) as tab:
        tab.page.goto(f"{still}/jobs")
        expect(tab.at("signin-token")).to_be_visible()
        tab_to(tab, "Kubernetes token")
        tab.page.keyboard.type("token-of-bob")
        tab.page.keyboard.press("Enter")
        expect(tab.at("page-jobs")).to_be_visible()

        open_row(tab, f"{SPACE}/pytorchjob/bert")
        press(tab, "action-full-page")
        expect(tab.at("page-job")).to_be_visible()
        press(tab, "action-suspend")
        expect(tab.page.locator("dialog[open]")).to_contain_text(f"{SPACE}/bert")
        press(tab, "confirm-suspend")
        expect(tab.page.locator("dialog[open]")).to_have_count(0)
        ((action, account),) = writes.asked
        assert (action.target.title, account) == (
            f"PyTorchJob {SPACE}/bert",
            "system:serviceaccount:kube-ai:bob",
        )

        press(tab, "action-person")
        tab_to(tab, "My access")
        tab.page.keyboard.press("Enter")
        expect(tab.at("page-access")).to_be_visible()
        expect(tab.at("table-rights")).to_contain_text("in your namespaces")
        expect(tab.at("table-kubectl")).to_contain_text("jobs.batch")
        expect(tab.at("table-kubectl")).to_contain_text(SPACE)
        press(tab, "action-token")
        tab_to(tab, "form-submit")
        tab.page.keyboard.press("Enter")
        expect(tab.at("issued-text")).to_contain_text("token-of-bob-0")
        tab.page.keyboard.press("Escape")
        expect(tab.at("issued")).to_have_count(0)
        press(tab, "Revoke bob-0")
        press(tab, "form-submit")
        expect(tab.at("credentials")).not_to_contain_text("bob-0")
        press(tab, "action-person")
        press(tab, "action-sign-out")
        expect(tab.at("page-signin")).to_be_visible()
