"""Signing in with the browser: by keyboard alone, in both languages and themes, and what leads to
the page and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from msgspec import structs
from playwright.sync_api import Browser, expect
from tests.browser.accessibility import check_axe
from tests.browser.chromium import LOOKS, window
from tests.browser.signed_in import signed_in, tab_to
from tests.browser.still_console import served
from tests.console.clusters import living_cluster
from tests.console.people_parts import FollowedPeople, MemoryPeople, member
from tests.console.sign_in_parts import BOB, FakeRecords, FakeSignInApi, Parts, account
from tests.console.worlds import still_world
from tests.kube.addresses import free_port
from tests.kube.oidc_provider import CLIENT, PASSWORD, SECRET, UID, USER, provider
from tests.turns import in_turn

from fairlead.console.http.sign_in.tools import OneTimeCode
from fairlead.edge.oidc.provider import OidcSettings, OpenIdProvider
from fairlead.model.people.rows import ExternalUser, UserRole


@contextmanager
def signing_in(parts: Parts, code: OneTimeCode | None = None, **more: object) -> Iterator[str]:
    client = more.get("provider")
    closing = client.close if isinstance(client, OpenIdProvider) else None
    desk = parts.desk(code=code, **more)
    with served(still_world(living_cluster()), desk, closing) as address:
        yield address


def test_the_address_with_the_code_signs_in_and_forgets_the_code(browser: Browser) -> None:
    parts = Parts()
    code = OneTimeCode()
    with signing_in(parts, code) as address, window(browser, address) as tab:
        tab.page.goto(f"{address}/#code={code.text}")
        expect(tab.at("page-overview")).to_be_visible()
        expect(tab.at("action-person")).to_have_text("operator")
        assert code.text not in tab.page.url
        tab.page.go_back()
        assert code.text not in tab.page.url
        tab.page.goto(f"{address}/nodes#code={code.text}")
        expect(tab.at("page-nodes")).to_be_visible()


def test_a_used_code_is_refused_with_the_reason(browser: Browser) -> None:
    parts = Parts()
    code = OneTimeCode()
    assert code.spend(code.text)
    with signing_in(parts, code) as address, window(browser, address) as tab:
        tab.page.goto(f"{address}/#code={code.text}")
        expect(tab.at("signin-fault")).to_contain_text("was used")


def test_a_user_signs_in_and_out_by_keyboard_and_comes_back_to_the_page(browser: Browser) -> None:
    with signing_in(Parts()) as address, window(browser, address) as tab:
        tab.page.goto(f"{address}/jobs?job_type=pytorchjob")
        expect(tab.at("page-signin")).to_be_visible()
        expect(tab.at("signin-token")).to_be_visible()
        tab_to(tab, "Kubernetes token")
        tab.page.keyboard.type("wrong")
        tab.page.keyboard.press("Enter")
        expect(tab.at("signin-fault")).to_contain_text("does not accept this token")
        tab_to(tab, "Kubernetes token")
        tab.page.keyboard.press("Control+A")
        tab.page.keyboard.type("token-of-anna")
        tab.page.keyboard.press("Enter")
        expect(tab.at("page-jobs")).to_be_visible()
        expect(tab.page).to_have_url(f"{address}/jobs?job_type=pytorchjob")
        expect(tab.at("action-person")).to_have_text("Anna")
        tab_to(tab, "action-person")
        tab.page.keyboard.press("Enter")
        expect(tab.at("person")).to_be_visible()
        tab_to(tab, "action-sign-out")
        tab.page.keyboard.press("Enter")
        expect(tab.at("page-signin")).to_be_visible()
        tab.page.goto(f"{address}/overview")
        expect(tab.at("page-signin")).to_be_visible()


def test_my_access_and_my_work_are_those_of_the_one_who_is_signed_in(browser: Browser) -> None:
    with signing_in(Parts()) as address, window(browser, address) as tab:
        signed_in(tab, address, "token-of-anna", "/me", "access")
        panel = tab.at("panel-access")
        expect(panel).to_contain_text("Administrator")
        expect(panel).to_contain_text("anna")
        expect(panel).to_contain_text("Kubernetes token")
        tab.page.goto(f"{address}/mine")
        expect(tab.page).to_have_url(f"{address}/mine?user=anna")


@pytest.mark.parametrize(
    ("locale", "scheme", "word"),
    [("en-US", "light", "Create my user"), ("zh-CN", "dark", "创建我的用户")],
)
def test_an_administrator_without_a_user_becomes_one_by_a_click(
    browser: Browser, locale: str, scheme: str, word: str
) -> None:
    api = FakeSignInApi((BOB,))
    api.owners["token-of-installer"] = account("installer", "kube-system")
    api.makers.add("system:serviceaccount:kube-system:installer")
    parts = Parts(api, records=FakeRecords())
    people = FollowedPeople((member("bob", "a"),), (), api.change, parts.clock)
    world = structs.replace(still_world(living_cluster()), people=people)
    with (
        served(world, parts.desk()) as address,
        window(browser, address, locale, scheme=scheme) as tab,
    ):
        signed_in(tab, address, "token-of-installer", "/me", "access")
        expect(tab.at("action-own-user")).to_have_text(word)
        expect(tab.at("own-user-name")).to_have_value("installer")
        tab.keep(f"own-user-{locale}-{scheme}")
        check_axe(tab)
        tab.at("own-user-name").fill("Bob")
        tab.page.keyboard.press("Enter")
        expect(tab.at("panel-access-own")).to_contain_text("which another user has")
        expect(tab.at("own-user-name")).to_have_value("Bob")
        tab.at("own-user-name").fill("Ruth")
        tab.at("action-own-user").click()
        expect(tab.at("panel-access-own")).to_have_count(0)
        expect(tab.at("panel-access")).to_contain_text("ruth")
        expect(tab.at("panel-access-kubeconfig")).to_be_visible()
        # The page has the new sign-in's CSRF value.
        tab.at("action-kubeconfig").click()
        expect(tab.at("kubeconfig-made")).to_be_visible()


@pytest.mark.parametrize(("locale", "scheme"), in_turn(LOOKS, 2))
def test_the_page_is_accessible_in_both_languages_and_themes(
    browser: Browser, locale: str, scheme: str
) -> None:
    code = OneTimeCode()
    title = {"en-US": "Sign in", "zh-CN": "登录"}[locale]
    with (
        signing_in(Parts(), code) as address,
        window(browser, address, locale, scheme=scheme) as tab,
    ):
        tab.page.goto(f"{address}/signin")
        expect(tab.at("signin-code")).to_be_visible()
        expect(tab.page.get_by_role("heading", level=1)).to_have_text(title)
        tab.page.locator("input[type=password]").first.fill("wrong")
        tab.page.keyboard.press("Enter")
        expect(tab.at("signin-fault")).to_be_visible()
        tab.keep(f"sign-in-{locale}-{scheme}")
        check_axe(tab)
        signed_in(tab, address, "token-of-anna", "/signin?next=/me", "access")
        tab.at("action-person").click()
        expect(tab.at("person")).to_be_visible()
        tab.keep(f"access-{locale}-{scheme}")
        check_axe(tab)


def test_a_user_downloads_a_kubeconfig_by_keyboard(browser: Browser) -> None:
    people = MemoryPeople((member("anna", role=UserRole.ADMIN),), ())
    world = structs.replace(still_world(living_cluster()), people=people)
    parts = Parts(records=FakeRecords())
    with served(world, parts.desk()) as address, window(browser, address) as tab:
        signed_in(tab, address, "token-of-anna", "/me", "access")
        tab_to(tab, "24 h")
        tab.page.keyboard.press("Enter")
        tab_to(tab, "action-kubeconfig")
        with tab.page.expect_download() as saved:
            tab.page.keyboard.press("Enter")
        assert saved.value.suggested_filename == "anna.kubeconfig"
        text = Path(saved.value.path()).read_text(encoding="utf-8")
        assert yaml.safe_load(text)["users"][0]["user"] == {"token": "token-of-anna-0"}
        expect(tab.at("kubeconfig-made")).to_contain_text("anna-0")
        assert "token-of-anna-0" not in tab.page.content()
        check_axe(tab)
        tab.keep("access-kubeconfig")


def test_a_user_signs_in_at_a_real_provider(browser: Browser, tmp_path: Path) -> None:
    port = free_port()
    issuer = f"http://localhost:{port}/"
    bob = structs.replace(BOB, external=ExternalUser("oidc", UID), roles=(UserRole.ADMIN,))
    parts = Parts(FakeSignInApi(users=(bob,)))
    client = OpenIdProvider(OidcSettings(issuer, CLIENT, SECRET))
    with (
        signing_in(parts, provider=client, issuer=issuer) as address,
        provider(f"{address}/api/v1/signin/oidc/callback", tmp_path / "log", port),
        window(browser, address) as tab,
    ):
        tab.page.goto(f"{address}/jobs?job_type=pytorchjob")
        expect(tab.at("signin-oidc")).to_be_visible()
        tab_to(tab, "signin-oidc")
        tab.page.keyboard.press("Enter")
        tab.page.get_by_label("Username:").fill(USER)
        tab.page.get_by_label("Password:").fill(PASSWORD)
        tab.page.keyboard.press("Enter")
        expect(tab.at("page-jobs")).to_be_visible()
        expect(tab.page).to_have_url(f"{address}/jobs?job_type=pytorchjob")
        expect(tab.at("action-person")).to_have_text("Bob")
        tab.complaints = [each for each in tab.complaints if issuer not in each]


def test_with_the_code_of_a_simulated_cluster_one_looks_as_anna(browser: Browser) -> None:
    code = OneTimeCode()
    with signing_in(Parts(), code, is_simulated=True) as address, window(browser, address) as tab:
        tab.page.goto(f"{address}/#code={code.text}")
        expect(tab.at("page-overview")).to_be_visible()
        tab.at("action-person").click()
        tab.at("act-as-anna").click()
        expect(tab.at("action-person")).to_have_text("Anna")
        tab.at("action-person").click()
        tab.at("act-as-self").click()
        expect(tab.at("action-person")).to_have_text("operator")


def test_a_browser_that_is_signed_out_elsewhere_goes_to_sign_in(browser: Browser) -> None:
    with signing_in(Parts()) as address, window(browser, address) as tab:
        signed_in(tab, address, "token-of-anna", "/nodes", "nodes")
        tab.page.context.clear_cookies()
        tab.page.keyboard.type("gj")
        expect(tab.at("page-signin")).to_be_visible()
        expect(tab.page).to_have_url(f"{address}/signin?next=%2Fjobs")
