"""The pages Users, User groups and Audit, at the laptop and at a cluster that stands still."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs
from playwright.sync_api import Browser, expect
from tests.browser.accessibility import check_axe
from tests.browser.chromium import LOOKS, OUTPUT, Window, window
from tests.browser.layout import settle
from tests.browser.people_pages import MemoryTrail, open_row, press, row
from tests.browser.signed_in import signed_in, tab_to
from tests.browser.still_console import served
from tests.console.clusters import living_cluster
from tests.console.people_parts import MemoryPeople, member, team
from tests.console.sign_in_parts import FakeSignInApi, Parts
from tests.console.worlds import still_world
from tests.kube.kubectl import Kubectl, KubectlError
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.programs import program
from tests.turns import in_turn

from fairlead.model.people.rows import UserRole

pytestmark = pytest.mark.turns(2, 1)

LEAF = "root.research"
"""A leaf of the scenario, with the namespace `research`."""


@pytest.fixture(scope="module")
def laptop() -> Iterator[Laptop]:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with running_laptop(OUTPUT / "people.log", "--sign-in", "--scenario=empty") as it:
        # The scenario's own group has the one leaf.
        it.kubectl.run("delete", "usergroups.fairlead.io", "research", "-n", "kube-ai")
        yield it


def code_of(laptop: Laptop) -> str:
    return re.findall(r"#code=(\S+)", laptop.component.log.read_text(encoding="utf-8"))[-1]


@pytest.fixture
def still() -> Iterator[str]:
    """A console with a cluster that stands still, at which Anna is an administrator."""
    users = (member("anna", role=UserRole.ADMIN), member("bob", "a"))
    groups = (team("a"), team("b"))
    people = MemoryPeople(users, groups)
    world = structs.replace(still_world(living_cluster()), people=people)
    desk = Parts(FakeSignInApi(users, groups), records=MemoryTrail()).desk()
    with served(world, desk) as address:
        yield address


@pytest.mark.parametrize(("locale", "scheme"), in_turn(LOOKS, 2))
def test_the_pages_are_accessible_in_both_languages_and_themes(
    still: str, browser: Browser, locale: str, scheme: str
) -> None:
    with window(browser, still, locale, scheme=scheme) as tab:
        signed_in(tab, still, "token-of-anna", "/users?open=bob", "users")
        expect(tab.at("credentials")).to_be_visible()
        check_axe(tab)
        tab.at("action-edit").click()
        tab.at("user-group-a").uncheck()
        expect(tab.at("user-form").locator(".form-fault")).to_be_visible()
        tab.keep(f"user-faults-{locale}-{scheme}")
        check_axe(tab)
        tab.at("form-submit").click()
        expect(tab.at("write-fault")).to_be_visible()
        assert not tab.at("user-group-a").is_checked(), "what was chosen is kept"
        check_axe(tab)
        tab.page.keyboard.press("Escape")
        expect(tab.at("user-form")).to_have_count(0)
        tab.at("action-delete").click()
        expect(tab.at("form-effects")).to_contain_text("bob:a-ns:fairlead-researcher")
        check_axe(tab)
        tab.page.goto(f"{still}/groups?open=a")
        tab.at("action-delete").click()
        expect(tab.at("delete-blocked")).to_be_visible()
        expect(tab.at("form-submit")).to_be_disabled()
        check_axe(tab)
        tab.page.goto(f"{still}/audit")
        expect(tab.at("table-audit")).to_be_visible()
        tab.keep(f"audit-{locale}-{scheme}")
        check_axe(tab)


def test_a_researcher_finds_neither_the_pages_nor_what_is_on_them(
    still: str, browser: Browser
) -> None:
    with window(browser, still) as tab:
        signed_in(tab, still, "token-of-bob", "/me", "access")
        expect(tab.at("credentials")).to_be_visible()
        expect(tab.page.get_by_role("link", name="Users")).to_have_count(0)
        tab.page.goto(f"{still}/users")
        expect(tab.at("page-of-admins")).to_be_visible()
        assert "anna" not in tab.page.content()


def retype(tab: Window, wanted: str, text: str) -> None:
    tab_to(tab, wanted)
    tab.page.keyboard.press("Control+A")
    tab.page.keyboard.type(text)


def go(tab: Window, letter: str, page_id: str) -> None:
    """To a board, by its letter, within a second: a page that is still being drawn takes longer."""
    settle(tab)
    tab.page.keyboard.press("g")
    tab.page.keyboard.press(letter)
    expect(tab.at(f"page-{page_id}")).to_be_visible()


def test_a_team_is_let_in_and_out_by_keyboard_alone(
    laptop: Laptop, browser: Browser, tmp_path: Path
) -> None:
    with window(browser, laptop.console.url) as tab:
        tab.page.goto(f"{laptop.console.url}/overview#code={code_of(laptop)}")
        expect(tab.at("page-overview")).to_be_visible()

        go(tab, "t", "groups")
        press(tab, "action-new-group")
        retype(tab, "group-name", "team_A")
        tab_to(tab, "group-leaf")
        tab.page.keyboard.type(LEAF)
        form = tab.at("group-form")
        expect(form.locator(".form-fault")).to_contain_text("`team_A` is not 1 to 63 of")
        expect(tab.at("group-leaf")).to_have_value(LEAF)
        retype(tab, "group-name", "teamA")
        expect(tab.at("form-effects")).to_contain_text("kube-ai/teama")
        tab.keep("group-form")
        press(tab, "form-submit")
        expect(form).to_have_count(0)
        expect(row(tab, "teama")).to_contain_text(LEAF)

        go(tab, "p", "users")
        press(tab, "action-new-user")
        tab_to(tab, "user-name")
        tab.page.keyboard.type("Rosa")
        tab_to(tab, "user-group-teama")
        tab.page.keyboard.press("Space")
        expect(tab.at("form-effects")).to_contain_text("research/rosa:research:fairlead-researcher")
        tab.keep("user-form")
        press(tab, "form-submit")
        expect(tab.at("user-form")).to_have_count(0)
        expect(row(tab, "rosa")).to_contain_text("Ready")

        open_row(tab, "rosa")
        press(tab, "action-kubeconfig")
        press(tab, "form-submit")
        expect(tab.at("issued-text")).to_contain_text("kind: Config")
        with tab.page.expect_download() as download:
            press(tab, "issued-download")
        assert download.value.suggested_filename == "kubeconfig-rosa.yaml"
        kubeconfig = tmp_path / "rosa.yaml"
        download.value.save_as(kubeconfig)
        tab.page.keyboard.press("Escape")
        expect(tab.at("issued")).to_have_count(0)
        expect(tab.at("credentials")).to_contain_text("valid until")
        tab.keep("user-open")
        bob = Kubectl(program("kubectl"), kubeconfig, tmp_path)
        name = bob.run("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
        assert name == "system:serviceaccount:kube-ai:rosa"
        bob.run("get", "pods", "-n", "research")

        press(tab, "action-disable")
        expect(tab.at("form-effects")).to_contain_text("research/rosa:research:fairlead-researcher")
        tab.keep("user-disable")
        press(tab, "form-submit")
        expect(tab.at("user-state")).to_have_text("Disabled")
        with pytest.raises(KubectlError, match=r"Forbidden|Unauthorized"):
            bob.run("get", "pods", "-n", "research")

        press(tab, "action-delete")
        expect(tab.at("delete-form")).to_be_visible()
        expect(tab.at("form-submit")).to_be_disabled()
        retype(tab, "delete-name", "rosa")
        expect(tab.at("form-submit")).to_be_enabled()
        press(tab, "form-submit")
        expect(row(tab, "rosa")).to_have_count(0)

        go(tab, "a", "audit")
        table = tab.at("table-audit")
        for action in ("groups.create", "users.create", "credentials.create", "users.delete"):
            expect(table).to_contain_text(action)
        tab.keep("audit")
        for path, page_id in (("/users", "users"), ("/groups", "groups"), ("/audit", "audit")):
            tab.page.goto(f"{laptop.console.url}{path}")
            expect(tab.at(f"page-{page_id}")).to_be_visible()
            check_axe(tab)
