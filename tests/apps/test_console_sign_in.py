"""Signing in at the console over HTTP: ways, cookies, what ends a sign-in, and attacks."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.apps.running_console import console
from tests.apps.signed_browser import Browser, served
from tests.console.sign_in_parts import (
    ANNA,
    BOB,
    ISSUER,
    KEY,
    FakeProvider,
    FakeRecords,
    FakeSignInApi,
    Parts,
    account,
    person,
)
from tests.waiting import until

from fairlead.apps.console_server import ConsoleSettings
from fairlead.console.http.proxies import Proxies
from fairlead.console.http.sign_in.tools import COOKIE, STATE_COOKIE, OneTimeCode
from fairlead.console.http.writes import HEADER
from fairlead.console.pages.endpoints import BASE, ENDPOINTS
from fairlead.edge.store.address import store_address
from fairlead.edge.store.opened import open_store
from fairlead.errors import OutsideError
from fairlead.model.people.external import ExternalIdentity
from fairlead.model.people.rows import ExternalUser, Ready, ReadyReason, UserRole, UserStatus
from fairlead.model.records.audit import AuditFilter
from fairlead.model.refusal import Refusal
from fairlead.rules.people.sign_in import TRIES_MAX

HOURS = 3600.0


# --- what needs signing in ------------------------------------------------------------------------


async def test_every_route_but_signing_in_needs_a_sign_in() -> None:
    async with served(Parts()) as page:
        for endpoint in ENDPOINTS:
            path = endpoint.path
            for name in ("namespace", "type", "name", "query", "id", "token"):
                path = path.replace(f"{{{name}}}", "x")
            status, answer = await Browser(page).send(path, endpoint.method, endpoint.body and {})
            if endpoint.right.is_open:
                assert status != 401, path
            else:
                assert (status, answer["code"]) == (401, "signed-out"), path


async def test_a_console_is_ready_when_it_has_read_its_users() -> None:
    """A new pod gets no request while it would answer that it knows no users."""
    api = FakeSignInApi()
    api.lists_users = False
    async with served(Parts(api)) as page:
        status, _, body = await page.get("/readyz")
        assert status == 503
        assert json.loads(body)["error"] == "the users of the cluster are not read yet"
        assert (await page.get("/healthz"))[0] == 200
        api.list_users(*api.users)
        await api.settle()
        assert (await page.get("/readyz"))[0] == 200


async def test_the_page_and_the_probes_need_none() -> None:
    async with served(Parts()) as page:
        assert (await page.get("/healthz"))[0] == 200
        assert (await page.get("/readyz"))[0] == 200
        assert (await page.get("/metrics"))[0] == 200
        assert (await page.get("/"))[0] in (200, 503), "503 without built pages"
        _, answer = await Browser(page).send("/signin/methods")
    assert answer == {"ways": ["token"], "failure": None}


async def test_without_sign_in_there_is_nothing_to_sign_in_at() -> None:
    async with console() as page:
        status, answer = await Browser(page).sign_in("token-of-bob")
        assert (status, answer["error"]) == (404, "this console has no sign-in")
        assert (await Browser(page).me())["way"] == "none"
        assert (await Browser(page).send("/signin/methods"))[1]["ways"] == []


# --- ways -----------------------------------------------------------------------------------------


async def test_a_user_signs_in_with_a_token_and_is_what_the_user_object_has() -> None:
    async with served(Parts()) as page:
        bob = await Browser(page).signed_in("token-of-bob")
        me = await bob.me()
    assert (me["user"], me["way"]) == (
        {
            "name": "Bob",
            "role": "researcher",
            "id": "bob",
            "groups": ["a"],
            "leaves": ["root.a"],
            "namespaces": ["a-ns"],
        },
        "token",
    )


@pytest.mark.parametrize(
    ("owner", "status", "code", "error"),
    [
        (Refusal("it has expired"), 401, "signed-out", "it has expired"),
        (
            account("mallory"),
            403,
            "no-user",
            "`system:serviceaccount:kube-ai:mallory` is signed in at the cluster and is no user of "
            "Fairlead",
        ),
        (
            account("bob", "default"),
            403,
            "no-user",
            "`system:serviceaccount:default:bob` is signed in at the cluster and is no user of "
            "Fairlead",
        ),
    ],
)
async def test_a_token_of_no_user_is_refused(
    owner: Any, status: int, code: str, error: str
) -> None:
    parts = Parts()
    parts.api.owners["t"] = owner
    async with served(parts) as page:
        browser = Browser(page)
        found, answer = await browser.sign_in("t")
        assert (found, answer["code"], answer["error"]) == (status, code, error)
        assert not browser.cookies
        assert not parts.store.rows


async def test_who_may_make_users_is_the_first_administrator_until_that_right_is_gone() -> None:
    parts = Parts(FakeSignInApi(users=()))
    parts.api.owners["t"] = account("installer", "kube-system")
    parts.api.makers = {"system:serviceaccount:kube-system:installer"}
    async with served(parts) as page:
        first = await Browser(page).signed_in("t")
        user = (await first.me())["user"]
        assert (user["role"], user["id"]) == ("admin", "")
        parts.api.makers.clear()
        parts.clock.at += 1.1
        assert await first.code() == "no-user"


async def test_a_user_that_exists_is_never_the_first_administrator() -> None:
    """Also if the ServiceAccount may update users: the User object decides."""
    parts = Parts(FakeSignInApi(users=(structs.replace(BOB, is_disabled=True),)))
    parts.api.makers = {"system:serviceaccount:kube-ai:bob"}
    async with served(parts) as page:
        status, answer = await Browser(page).sign_in("token-of-bob")
    assert (status, answer["error"]) == (403, "the user `bob` is disabled")


async def test_a_service_account_that_another_program_made_is_not_the_users() -> None:
    for status in (UserStatus(), UserStatus(ready=Ready(reason=ReadyReason.NAME_TAKEN))):
        parts = Parts(FakeSignInApi(users=(structs.replace(ANNA, status=status),)))
        async with served(parts) as page:
            found, answer = await Browser(page).sign_in("token-of-anna")
            assert (found, answer["code"]) == (403, "no-user")
            _, answer = await Browser(page, Authorization="Bearer token-of-anna").send("/me")
            assert answer["code"] == "no-user"


async def test_the_code_works_once_and_for_ten_minutes() -> None:
    parts = Parts(FakeSignInApi(users=()))
    code = OneTimeCode(monotonic=parts.clock)
    async with served(parts, code=code) as page:
        admin = await Browser(page).signed_in(code.text, "code")
        me = await admin.me()
        assert (me["user"]["name"], me["user"]["role"], me["way"]) == ("operator", "admin", "code")
        assert (await Browser(page).sign_in(code.text, "code"))[0] == 401
    late = OneTimeCode(monotonic=parts.clock)
    parts.clock.at += 600
    async with served(parts, code=late) as page:
        status, answer = await Browser(page).sign_in(late.text, "code")
    assert (status, answer["error"]) == (401, "this code is wrong, was used, or is too old")


async def test_after_an_old_code_the_terminal_shows_a_new_one() -> None:
    parts = Parts(FakeSignInApi(users=()))
    code, printed = OneTimeCode(monotonic=parts.clock), list[str]()
    code.announce = printed.append
    first = code.text
    async with served(parts, code=code) as page:
        assert (await Browser(page).sign_in("of a stranger", "code"))[0] == 401
        await Browser(page).signed_in(first, "code")
        assert (await Browser(page).sign_in("of a stranger", "code"))[0] == 401
        assert printed == []
        status, answer = await Browser(page).sign_in(first, "code")
        assert status == 401 and first not in printed and len(printed) == 1
        assert printed[0] not in json.dumps(answer)
        assert (await Browser(page).sign_in(first, "code"))[0] == 401
        assert len(printed) == 1, "the new one still works"
        await Browser(page).signed_in(printed[0], "code")
        for old in (first, printed[0]):
            assert (await Browser(page).sign_in(old, "code"))[0] == 401
        assert len(printed) == 2
        parts.clock.at += 600
        assert (await Browser(page).sign_in(first, "code"))[0] == 401
        await Browser(page).signed_in(printed[2], "code")


async def test_a_console_that_others_reach_offers_no_code() -> None:
    async with served(Parts()) as page:
        assert (await Browser(page).send("/signin/methods"))[1]["ways"] == ["token"]
        status, answer = await Browser(page).sign_in("", "code")
    assert (status, answer["error"]) == (400, "this console has no one-time code")


async def test_programs_send_their_token_and_need_neither_cookie_nor_csrf() -> None:
    async with served(Parts()) as page:
        program = Browser(page, Authorization="Bearer token-of-anna")
        assert (await program.me())["way"] == "bearer"
        assert not program.cookies
        status, _ = await program.send("/quota/what-if", "POST", {"changes": []})
        assert status != 403
        other = Browser(page, Authorization="Bearer nonsense")
        assert await other.code() == "signed-out"


async def test_a_program_is_asked_about_once_a_second() -> None:
    parts = Parts()
    async with served(parts) as page:
        program = Browser(page, Authorization="Bearer token-of-bob")
        for _ in range(5):
            await program.me()
        assert parts.api.reviews == 1
        parts.api.owners["token-of-bob"] = Refusal("it was revoked")
        parts.clock.at += 1.0
        assert await program.code() == "signed-out"


async def test_while_users_are_unknown_no_user_is_judged() -> None:
    class Silent(FakeSignInApi):
        async def follow(self, observe: Any) -> None:
            await super().settle()
            import asyncio

            await asyncio.Event().wait()

    async with served(Parts(Silent())) as page:
        status, answer = await Browser(page).sign_in("token-of-bob")
    assert (status, answer["code"]) == (503, "not-ready")


# --- cookies --------------------------------------------------------------------------------------


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites() -> None:
    async with served(Parts()) as page:
        bob = await Browser(page).signed_in("token-of-bob")
    cookie = bob.set[COOKIE]
    assert (cookie["httponly"], cookie["samesite"].lower(), cookie["path"]) == (True, "lax", "/")
    assert (cookie["secure"], cookie["max-age"], cookie["domain"]) == ("", "86400", "")


async def test_behind_a_tls_proxy_and_below_a_path_the_cookie_is_for_that_alone() -> None:
    settings = ConsoleSettings(base_path="gpu")
    https = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}
    async with served(Parts(), settings=settings, proxies=Proxies(["127.0.0.0/8"])) as page:
        bob = await Browser(page, "/gpu", **https).signed_in("token-of-bob")
        assert (await bob.me())["user"]["id"] == "bob"
    assert (bob.set[COOKIE]["secure"], bob.set[COOKIE]["path"]) == (True, "/gpu/")


async def test_forwarded_headers_of_others_do_not_count() -> None:
    parts = Parts()
    async with served(parts, proxies=Proxies(["10.0.0.0/8"])) as page:
        forged = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}
        bob = await Browser(page, **forged).signed_in("token-of-bob")
    assert bob.set[COOKIE]["secure"] == ""
    assert [row.source_ip for row in parts.store.rows.values()] == ["127.0.0.1"]


async def test_only_a_hash_of_the_cookie_is_stored() -> None:
    parts = Parts()
    async with served(parts) as page:
        bob = await Browser(page).signed_in("token-of-bob")
    id, _, signature = bob.cookies[COOKIE].partition(".")
    stored = repr(list(parts.store.rows.values()))
    assert id not in stored and signature not in stored and "token-of-bob" not in stored


async def test_a_changed_or_foreign_cookie_is_no_sign_in() -> None:
    parts = Parts()
    async with served(parts) as page:
        bob = await Browser(page).signed_in("token-of-bob")
        good = bob.cookies[COOKIE]
        id, _, signature = good.partition(".")
        flipped = ("A" if id[0] != "A" else "B") + id[1:]
        for bad in (f"{flipped}.{signature}", id, f"{id}.", f"{id}.{signature}A", f".{signature}"):
            bob.cookies[COOKIE] = bad
            assert await bob.code() == "signed-out", bad
        bob.cookies[COOKIE] = good
        assert await bob.code() == ""
    async with served(parts, keys=(b"n" * 32, KEY)) as page:
        rotated = Browser(page)
        rotated.cookies[COOKIE] = good
        assert await rotated.code() == "", "the key of the time before still counts"
    async with served(parts, keys=(b"n" * 32,)) as page:
        other = Browser(page)
        other.cookies[COOKIE] = good
        assert await other.code() == "signed-out"


@pytest.mark.parametrize(
    "value", ["", ".", "a.b", "é", "%ff", "x" * 6000, '"', "==", "bnVsbA", "e30", "W10", "\\x00"]
)
async def test_cookies_of_any_content_are_harmless(value: str) -> None:
    names = (COOKIE, STATE_COOKIE, "fairlead-next", "fairlead-sign-in-failed")
    async with served(Parts(), provider=FakeProvider()) as page:
        browser = Browser(page)
        for path in ("/me", "/signin/methods", "/signin/oidc/callback?code=good&state=x"):
            browser.cookies = dict.fromkeys(names, value)
            status, _ = await browser.send(path)
            assert status in (200, 400, 401), path


async def test_a_sign_in_gets_a_new_id_and_ends_what_the_browser_had() -> None:
    """Session fixation: an id that was planted is worth nothing afterwards."""
    async with served(Parts()) as page:
        planted = await Browser(page).signed_in("token-of-bob")
        victim = Browser(page)
        victim.cookies = dict(planted.cookies)
        await victim.signed_in("token-of-anna")
        assert victim.cookies != planted.cookies
        assert (await victim.me())["user"]["id"] == "anna"
        assert await planted.code() == "signed-out"


# --- writes ---------------------------------------------------------------------------------------


async def test_a_write_needs_the_token_of_its_own_sign_in() -> None:
    async with served(Parts()) as page:
        bob = await Browser(page).signed_in("token-of-bob")
        anna = await Browser(page).signed_in("token-of-anna")
        right, foreign = (await anna.me())["csrf"], (await bob.me())["csrf"]
        assert right != foreign
        for given in ({}, {HEADER: foreign}, {HEADER: ""}):
            status, answer = await anna.send("/quota/what-if", "POST", {"changes": []}, **given)
            assert (status, answer["code"]) == (403, "csrf"), given
        status, answer = await anna.send(
            "/quota/what-if", "POST", {"changes": []}, **{HEADER: right}
        )
        assert answer.get("code") != "csrf"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
async def test_no_other_page_signs_a_browser_in(headers: Mapping[str, str], status: int) -> None:
    async with served(Parts()) as page:
        browser = Browser(page, **headers)
        assert (await browser.sign_in("token-of-bob"))[0] == status
        assert not browser.cookies


async def test_no_other_page_signs_a_browser_out() -> None:
    async with served(Parts()) as page:
        bob = await Browser(page).signed_in("token-of-bob")
        assert (await bob.send("/signin", "DELETE"))[1]["code"] == "csrf"
        csrf = (await bob.me())["csrf"]
        evil = {HEADER: csrf, "Origin": "https://evil.example"}
        assert (await bob.send("/signin", "DELETE", **evil))[1]["code"] == "csrf"
        assert await bob.code() == ""


# --- ends -----------------------------------------------------------------------------------------


async def test_signing_out_ends_it_on_every_replica_within_a_second() -> None:
    parts = Parts()
    async with served(parts) as one, served(parts) as two:
        bob = await Browser(one).signed_in("token-of-bob")
        there = Browser(two)
        there.cookies = dict(bob.cookies)
        kept = dict(bob.cookies)
        assert await there.code() == ""
        csrf = (await bob.me())["csrf"]
        assert (await bob.send("/signin", "DELETE", **{HEADER: csrf}))[0] == 200
        assert COOKIE not in bob.cookies, "the browser forgets it"
        bob.cookies = kept
        assert await bob.code() == "signed-out"
        parts.clock.at += 1.0
        assert await there.code() == "signed-out"


async def test_a_disabled_user_is_out_at_the_next_request_and_stays_out() -> None:
    parts = Parts()
    async with served(parts) as page:
        bob = await Browser(page).signed_in("token-of-bob")
        parts.api.change(structs.replace(BOB, is_disabled=True))
        await parts.api.settle()
        assert await bob.code() in ("no-user", "signed-out")
        parts.api.change(BOB)
        await parts.api.settle()
        assert await bob.code() == "signed-out", "enabling brings no sign-in back"


@pytest.mark.parametrize("how", ["signed out", "disabled"])
async def test_a_row_that_was_read_before_its_end_does_not_count_after_it(how: str) -> None:
    parts = Parts()
    async with served(parts) as page:
        bob = await Browser(page).signed_in("token-of-bob")
        kept, csrf = dict(bob.cookies), (await bob.me())["csrf"]
        late = Browser(page)
        late.cookies = dict(kept)
        parts.clock.at += 1.0
        parts.store.held = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(late.code())
            await until(lambda: parts.store.reads_held == 1)
            release, parts.store.held = parts.store.held, None
            if how == "disabled":
                parts.api.change(structs.replace(BOB, is_disabled=True))
            else:
                tasks.create_task(bob.send("/signin", "DELETE", **{HEADER: csrf}))
            await until(lambda: not parts.store.rows)
            release.set()
        parts.api.change(BOB)
        await parts.api.settle()
        late.cookies = dict(kept)
        assert await late.code() == "signed-out"


async def test_a_user_who_is_disabled_while_the_store_is_away_stays_out() -> None:
    parts = Parts()
    async with served(parts) as page:
        await Browser(page).signed_in("token-of-bob")
        parts.store.is_down = True
        parts.api.change(structs.replace(BOB, is_disabled=True))
        await parts.api.settle()
        parts.api.change(BOB)
        await parts.api.settle()
        parts.store.is_down = False
        await until(lambda: not parts.store.rows)


@pytest.mark.parametrize("how", ["deleted", "ending", "made anew"])
async def test_a_deleted_user_is_out(how: str) -> None:
    parts = Parts()
    async with served(parts) as page:
        bob = await Browser(page).signed_in("token-of-bob")
        if how == "ending":
            parts.api.change(structs.replace(BOB, is_ending=True))
        else:
            parts.api.remove(BOB)
        if how == "made anew":
            parts.api.change(structs.replace(BOB, uid="another"))
        await parts.api.settle()
        assert await bob.code() in ("no-user", "signed-out")


async def test_a_user_made_anew_while_no_console_ran_is_another_one() -> None:
    parts = Parts()
    async with served(parts) as page:
        bob = await Browser(page).signed_in("token-of-bob")
    parts.clock.at += 3600
    for age, code in ((7200, ""), (1800, "no-user")):
        parts.api.users = (structs.replace(BOB, created_at=parts.clock.at - age), ANNA)
        async with served(parts) as page:
            again = Browser(page)
            again.cookies = dict(bob.cookies)
            assert await again.code() == code


async def test_an_api_server_that_serves_no_users_for_a_while_ends_no_sign_in() -> None:
    parts = Parts()
    async with served(parts) as page:
        bob = await Browser(page).signed_in("token-of-bob")
        parts.api.list_users()
        await parts.api.settle()
        assert await bob.code() == "no-user"
        parts.api.list_users(BOB, ANNA)
        await parts.api.settle()
        assert await bob.code() == ""


async def test_role_and_namespaces_are_those_of_this_moment() -> None:
    parts = Parts()
    async with served(parts) as page:
        bob = await Browser(page).signed_in("token-of-bob")
        parts.api.change(structs.replace(BOB, groups=()))
        await parts.api.settle()
        assert (await bob.me())["user"]["namespaces"] == []
        parts.api.change(structs.replace(BOB, groups=("a", "b")))
        await parts.api.settle()
        assert (await bob.me())["user"]["namespaces"] == ["a-ns"], "b-ns is not bound yet"
        parts.api.change(structs.replace(BOB, roles=(UserRole.ADMIN,)))
        await parts.api.settle()
        assert (await bob.me())["user"]["role"] == "admin"


async def test_a_sign_in_ends_after_eight_idle_hours_and_after_a_day() -> None:
    parts = Parts()
    async with served(parts) as page:
        idle = await Browser(page).signed_in("token-of-bob")
        used = await Browser(page).signed_in("token-of-bob")
        for _ in range(3):
            parts.clock.at += 7.9 * HOURS
            assert await used.code() == ""
        assert await idle.code() == "signed-out"
        parts.clock.at += 0.3 * HOURS
        assert await used.code() == "signed-out", "24 h after it began"
        assert not parts.store.rows


# --- attempts -------------------------------------------------------------------------------------


async def test_the_eleventh_failure_of_a_minute_has_to_wait() -> None:
    parts = Parts()
    async with served(parts, proxies=Proxies(["127.0.0.1"])) as page:
        browser = Browser(page, **{"X-Forwarded-For": "203.0.113.1"})
        for _ in range(TRIES_MAX):
            assert (await browser.sign_in("guess"))[0] == 401
        status, answer = await browser.sign_in("token-of-bob")
        assert (status, answer["code"]) == (429, "rate-limited")
        assert (await Browser(page, **{"X-Forwarded-For": "203.0.113.2"}).sign_in("token-of-bob"))[
            0
        ] == 200, "another client is not kept out"
        parts.clock.at += 60
        assert (await browser.sign_in("token-of-bob"))[0] == 200


async def test_a_forged_address_escapes_no_limit() -> None:
    async with served(Parts()) as page:
        found = [
            (await Browser(page, **{"X-Forwarded-For": f"203.0.113.{n}"}).sign_in("guess"))[0]
            for n in range(TRIES_MAX + 1)
        ]
    assert found == [401] * TRIES_MAX + [429]


async def test_good_sign_ins_are_not_limited() -> None:
    async with served(Parts()) as page:
        for _ in range(3 * TRIES_MAX):
            await Browser(page).signed_in("token-of-bob")


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "ä", "\x00"])
async def test_what_can_be_no_token_is_not_sent_to_the_api_server(token: str) -> None:
    parts = Parts()
    async with served(parts) as page:
        status, answer = await Browser(page).sign_in(token)
        assert (status, answer["code"]) == (401, "signed-out")
    assert parts.api.reviews == 0


async def test_a_huge_token_is_refused_with_its_size() -> None:
    parts = Parts()
    async with served(parts) as page:
        status, answer = await Browser(page).sign_in("x" * 100_000)
        assert (status, answer["error"]) == (400, "the token has 100000 characters")
        too_large = (await Browser(page).send("/signin", "POST", b" " * ((1 << 20) + 1)))[0]
        assert too_large == 413
    assert parts.api.reviews == 0


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"{}", b'{"way":"token"}', b'{"way":"root","secret":""}', b"\xff"]
)
async def test_a_malformed_order_is_400_and_shows_no_secret(body: bytes) -> None:
    async with served(Parts()) as page:
        status, answer = await Browser(page).send("/signin", "POST", body)
    assert (status, answer["code"]) == (400, "malformed")


async def test_no_secret_is_logged_or_sent_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    parts = Parts()
    parts.api.owners["secret-token"] = Refusal("it has expired")
    answers = []
    async with served(parts) as page:
        browser = Browser(page)
        for body in (
            {"way": "token", "secret": "secret-token"},
            {"way": "token", "secret": "secret-token" * 2000},
            {"way": "code", "secret": "secret-token"},
            {"way": "token", "secret": "secret-token", "more": "secret-token"},
        ):
            answers.append(await browser.send("/signin", "POST", body))
        answers.append(await Browser(page, Authorization="Bearer secret-token").send("/me"))
        bob = await browser.signed_in("token-of-bob")
    shown = caplog.text + repr(answers)
    assert "secret-token" not in shown and "token-of-bob" not in shown
    assert bob.cookies[COOKIE].partition(".")[0] not in shown


# --- an OpenID Connect provider -------------------------------------------------------------------


async def at_provider(browser: Browser, next: str = "/jobs?page=2") -> str:
    """The state with which the browser is sent to the provider."""
    status, address = await browser.send(f"/signin/oidc/start?next={next}")
    assert status == 303, address
    return str(address).partition("state=")[2]


async def test_a_user_signs_in_at_the_provider_and_lands_where_it_began() -> None:
    provider = FakeProvider()
    async with served(Parts(), provider=provider) as page:
        browser = Browser(page)
        assert (await browser.send("/signin/methods"))[1]["ways"] == ["oidc", "token"]
        state = await at_provider(browser, "/jobs%3Fpage%3D2")
        status, address = await browser.send(
            f"/signin/oidc/callback?code=good&state={state}&session_state=1"
        )
        assert (status, address) == (303, "/jobs?page=2")
        me = await browser.me()
    assert (me["user"]["id"], me["way"]) == ("bob", "oidc")
    begun, finished = provider.asked
    assert begun == finished, "nonce, verifier and address are the same at both ends"
    assert begun.callback == f"{page.url}{BASE}/signin/oidc/callback"
    assert len({begun.state, begun.nonce, begun.verifier}) == 3
    assert STATE_COOKIE not in browser.cookies


@pytest.mark.parametrize(
    "next", ["https://evil.example/", "//evil.example/", "/%5Cevil.example", "javascript:1", "jobs"]
)
async def test_no_other_host_is_where_a_browser_lands(next: str) -> None:
    async with served(Parts(), provider=FakeProvider()) as page:
        browser = Browser(page)
        state = await at_provider(browser, next)
        _, address = await browser.send(f"/signin/oidc/callback?code=good&state={state}")
    assert address == "/"


async def test_an_answer_of_the_provider_is_for_its_browser_once_and_in_time() -> None:
    parts, provider = Parts(), FakeProvider()
    async with served(parts, provider=provider) as page:
        browser, other = Browser(page), Browser(page)
        state = await at_provider(browser)
        await at_provider(other)
        for thief in (Browser(page), other):  # without a cookie, and with its own
            status, answer = await thief.send(f"/signin/oidc/callback?code=good&state={state}")
            assert (status, answer["error"]) == (
                400,
                "this answer of the provider is not for this browser",
            )
        kept = dict(browser.cookies)
        assert (await browser.send(f"/signin/oidc/callback?code=good&state={state}"))[0] == 303
        provider.users["again"] = ExternalIdentity(ISSUER, "1234")
        replay = Browser(page)
        replay.cookies = kept
        status, answer = await replay.send(f"/signin/oidc/callback?code=again&state={state}")
        assert (status, answer["error"]) == (400, "this answer of the provider was used already")
        late = Browser(page)
        state = await at_provider(late)
        parts.clock.at += 601
        status, answer = await late.send(f"/signin/oidc/callback?code=again&state={state}")
        assert (status, answer["error"]) == (400, "signing in at the provider took too long")


async def test_a_user_of_the_provider_without_a_user_object_is_refused_with_its_uid() -> None:
    users = {
        "stranger": ExternalIdentity(ISSUER, "9999"),
        "root": ExternalIdentity(ISSUER, "operator"),
    }
    async with served(Parts(), provider=FakeProvider(users)) as page:
        for code, uid in (("stranger", "9999"), ("root", "operator")):
            browser = Browser(page)
            state = await at_provider(browser)
            status, answer = await browser.send(f"/signin/oidc/callback?code={code}&state={state}")
            assert (status, answer["code"]) == (403, "no-user")
            assert answer["error"] == f"no user has the external uid `{uid}`"


async def test_two_users_of_one_external_uid_sign_in_as_neither() -> None:
    twin = person("twin", external=ExternalUser("oidc", "1234"))
    parts = Parts(FakeSignInApi(users=(BOB, twin)))
    async with served(parts, provider=FakeProvider()) as page:
        browser = Browser(page)
        state = await at_provider(browser)
        status, answer = await browser.send(f"/signin/oidc/callback?code=good&state={state}")
    assert status == 403
    assert answer["error"] == "several users have the external uid `1234`: `bob`, `twin`"


async def test_a_sign_in_ends_when_the_user_gets_another_external_uid() -> None:
    parts = Parts()
    async with served(parts, provider=FakeProvider()) as page:
        browser = Browser(page)
        state = await at_provider(browser)
        await browser.send(f"/signin/oidc/callback?code=good&state={state}")
        assert await browser.code() == ""
        parts.api.change(structs.replace(BOB, external=ExternalUser("oidc", "5678")))
        await parts.api.settle()
        assert await browser.code() == "no-user"


async def test_a_provider_that_hangs_or_refuses_is_shown_on_the_page() -> None:
    provider = FakeProvider()
    async with served(Parts(), provider=provider) as page:
        provider.failure = TimeoutError("the provider did not answer within 10 s")
        status, answer = await Browser(page).send("/signin/oidc/start")
        assert (status, answer["code"]) == (504, "outside-timeout")
        browser = Browser(page, Accept="text/html,*/*")
        status, address = await browser.send("/signin/oidc/start")
        assert (status, address) == (303, "/signin?failed=outside-timeout")
        assert (await browser.send("/signin/methods"))[1]["failure"] == {
            "code": "outside-timeout",
            "error": "the provider did not answer within 10 s",
            "hint": "ask for a shorter time range, or look at the source",
        }
        provider.failure = None
        state = await at_provider(browser)
        _, address = await browser.send(f"/signin/oidc/callback?error=access_denied&state={state}")
        assert address == "/signin?failed=signed-out"


async def test_behind_a_proxy_the_provider_sends_the_browser_to_the_external_address() -> None:
    provider = FakeProvider()
    external = "https://gpu.example/console/"
    async with served(Parts(), provider=provider, external_url=external) as page:
        await at_provider(Browser(page))
    assert provider.asked[0].callback == f"https://gpu.example/console{BASE}/signin/oidc/callback"


async def test_a_forged_host_is_no_address_for_the_provider() -> None:
    provider = FakeProvider()
    async with served(Parts(), provider=provider) as page:
        status, answer = await Browser(page, Host="evil.example").send("/signin/oidc/start")
        assert (status, answer["code"]) == (403, "foreign-host")
    assert not provider.asked


# --- the store and its audit ----------------------------------------------------------------------


async def test_sign_ins_of_a_real_store_are_known_to_another_console_and_noted(
    tmp_path: Path,
) -> None:
    store = await open_store(store_address(f"sqlite:///{tmp_path}/store.sqlite"))
    parts = Parts(store=store, records=store)
    try:
        async with served(parts) as one, served(parts) as two:
            assert (await Browser(one).sign_in("guess"))[0] == 401
            bob = await Browser(one).signed_in("token-of-bob")
            there = Browser(two)
            there.cookies = dict(bob.cookies)
            me = await there.me()
            assert me["user"]["id"] == "bob"
            await there.send("/signin", "DELETE", **{HEADER: me["csrf"]})
            parts.clock.at += 1.0
            assert await bob.code() == "signed-out"
        rows = await store.audit_page(AuditFilter(), 10)
        assert [(row.action, row.result, row.actor, row.role, row.code) for row in rows] == [
            ("session.end", "ok", "bob", "", ""),
            ("session.begin", "ok", "bob", "researcher", ""),
            ("session.begin", "refused", "", "", "signed-out"),
        ]
        assert all(row.source_ip == "127.0.0.1" and row.request_id for row in rows)
    finally:
        await store.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())  # noqa: ASYNC240
    assert (
        b"token-of-bob" not in kept and bob.cookies[COOKIE].partition(".")[0].encode() not in kept
    )


async def test_without_a_row_in_the_audit_no_sign_in_begins() -> None:
    parts = Parts(records=FakeRecords(down_after=0))
    async with served(parts) as page:
        browser = Browser(page)
        status, answer = await browser.sign_in("token-of-bob")
    assert (status, answer["error"]) == (503, "store: the disk is full")
    assert not browser.cookies and not parts.store.rows


async def test_clock_steps_sign_no_user_in_and_lock_no_user_out() -> None:
    parts = Parts()
    async with served(parts) as page:
        bob = await Browser(page).signed_in("token-of-bob")
        began = parts.clock.at
        parts.clock.at = began - 5 * 86_400.0
        assert await bob.code() == ""
        early = await Browser(page).signed_in("token-of-anna")
        parts.clock.at = began + 60.0
        assert await bob.code() == ""
        assert await early.code() == "signed-out", "it began five days ago"
        parts.clock.at = began + 366 * 86_400.0
        assert await bob.code() == "signed-out"
        parts.clock.at = began
        assert await bob.code() == "signed-out", "a sign-in that has ended does not come back"
        assert (await Browser(page).sign_in("token-of-bob"))[0] == 200


async def test_my_work_knows_the_namespaces_of_my_groups() -> None:
    """Bob has no work yet. A researcher learns no other namespaces."""
    carl = person("carl", "b")
    async with served(Parts(FakeSignInApi((BOB, ANNA, carl)))) as page:
        bob = await Browser(page).signed_in("token-of-bob")
        anna = await Browser(page).signed_in("token-of-anna")
        for browser, user, expected in (
            (bob, "bob", ["a-ns"]),
            (bob, "carl", []),
            (anna, "carl", ["b-ns"]),
            (anna, "stranger", []),
        ):
            status, answer = await browser.send(f"/mine?user={user}")
            assert (status, answer["namespaces"]) == (200, expected), user
        assert (await bob.send("/mine"))[1]["namespaces"] == []


# --- a sign-in and its token ----------------------------------------------------------------------


def token_of_bob(parts: Parts, seconds: float, **bound: Any) -> str:
    """A token that the API server accepts, with the claims that TokenRequest gives."""
    claims: dict[str, Any] = {
        "namespace": "kube-ai",
        "serviceaccount": {"name": "bob", "uid": "account-1"},
        **bound,
    }
    payload = json.dumps({"exp": parts.clock.at + seconds, "kubernetes.io": claims})
    body = base64.urlsafe_b64encode(payload.encode()).decode().rstrip("=")
    token = f"e30.{body}.c2ln"
    parts.api.owners[token] = account("bob")
    return token


SECRET = {"secret": {"name": "bob-1", "uid": "u-1"}}


async def test_a_sign_in_ends_when_its_token_does() -> None:
    parts = Parts()
    token = token_of_bob(parts, 1800.0)
    async with served(parts) as page:
        bob = await Browser(page).signed_in(token)
        assert bob.set[COOKIE]["max-age"] == "1800"
        parts.clock.at += 1799.0
        assert await bob.code() == ""
        parts.clock.at += 1.5
        assert await bob.code() == "signed-out"
        later = await Browser(page).signed_in(token_of_bob(parts, 30 * 86_400.0))
        assert later.set[COOKIE]["max-age"] == str(24 * 3600), "a sign-in has its own end, too"


async def test_the_cluster_s_time_decides_when_a_token_ends() -> None:
    """The clocks of console and cluster differ by an hour."""
    parts = Parts()
    token = token_of_bob(parts, 1800.0 - 3600.0)
    async with served(parts, cluster_now=lambda: parts.clock.at - 3600.0) as page:
        bob = await Browser(page).signed_in(token)
        assert bob.set[COOKIE]["max-age"] == "1800"


@pytest.mark.parametrize(
    ("bound", "looked_at"),
    [(SECRET, "secrets/bob-1/u-1"), ({}, "serviceaccounts/bob/account-1")],
)
async def test_a_revoked_token_ends_its_sign_in_within_a_second(
    bound: dict[str, Any], looked_at: str
) -> None:
    parts = Parts()
    async with served(parts) as page:
        bob = await Browser(page).signed_in(token_of_bob(parts, 8 * HOURS, **bound))
        other = await Browser(page).signed_in("token-of-bob")
        for _ in range(3):
            assert await bob.code() == ""
        assert parts.api.looks == [looked_at], "the API server is asked once a second"
        parts.api.gone.add(looked_at)
        parts.clock.at += 1.01
        status, answer = await bob.send("/me")
        assert (status, answer["code"]) == (401, "signed-out")
        assert answer["error"] == "the token with which you signed in was revoked"
        assert len(parts.store.rows) == 1, "the sign-in has ended, and the other one has not"
        assert await other.code() == ""
        parts.api.gone.clear()
        parts.clock.at += 1.01
        assert await bob.code() == "signed-out"


async def test_an_api_server_that_is_away_ends_no_sign_in() -> None:
    parts = Parts()
    async with served(parts) as page:
        bob = await Browser(page).signed_in(token_of_bob(parts, 8 * HOURS, **SECRET))
        parts.api.failure = OutsideError("kubernetes", "it does not answer")
        assert await bob.code() == ""
        parts.clock.at += 1.01
        parts.api.failure, parts.api.gone = None, {"secrets/bob-1/u-1"}
        assert await bob.code() == "signed-out"


async def test_a_token_of_another_namespace_or_form_is_bound_to_nothing() -> None:
    parts = Parts()
    foreign = token_of_bob(parts, 8 * HOURS, namespace="team-a", **SECRET)
    slashed = token_of_bob(parts, 8 * HOURS, secret={"name": "../x", "uid": "u-1"})
    async with served(parts) as page:
        for token in (foreign, slashed, "token-of-bob"):
            bob = await Browser(page).signed_in(token)
            assert await bob.code() == ""
    assert parts.api.looks == []


# --- looking as a user, and a store that is away --------------------------------------------------


async def test_with_the_code_of_a_simulated_cluster_one_looks_as_any_user() -> None:
    parts = Parts()
    code = OneTimeCode(monotonic=parts.clock)
    async with served(parts, code=code, is_simulated=True) as page:
        admin = await Browser(page).signed_in(code.text, "code")
        me = await admin.me()
        assert me["canActAs"] == ["anna", "bob"]
        status, _ = await admin.send("/me/as", "POST", {"user": "bob"}, **{HEADER: me["csrf"]})
        assert status == 200
        me = await admin.me()
        assert (me["user"]["id"], me["user"]["role"]) == ("bob", "researcher")
        assert me["canActAs"] == ["anna", "bob"]
        assert (await admin.send("/me/as", "POST", {"user": ""}, **{HEADER: me["csrf"]}))[0] == 200
        me = await admin.me()
        assert me["user"]["name"] == "operator"
        bad = await admin.send("/me/as", "POST", {"user": "carl"}, **{HEADER: me["csrf"]})
        assert bad[0] == 404


@pytest.mark.parametrize(("is_simulated", "way"), [(False, "code"), (True, "token")])
async def test_no_other_sign_in_looks_as_a_user(is_simulated: bool, way: str) -> None:
    parts = Parts()
    code = OneTimeCode(monotonic=parts.clock)
    async with served(parts, code=code, is_simulated=is_simulated) as page:
        secret = code.text if way == "code" else "token-of-anna"
        browser = await Browser(page).signed_in(secret, way)
        me = await browser.me()
        assert me["canActAs"] == []
        status, answer = await browser.send(
            "/me/as", "POST", {"user": "bob"}, **{HEADER: me["csrf"]}
        )
        assert (status, answer["code"]) == (403, "forbidden")
        assert (await browser.me())["user"] == me["user"]


async def test_while_the_store_is_away_pages_go_on_and_signing_in_does_not() -> None:
    parts = Parts()
    async with served(parts) as page:
        bob = await Browser(page).signed_in("token-of-bob")
        await bob.me()
        parts.store.is_down = True
        parts.clock.at += 120
        assert await bob.code() == ""
        status, answer = await Browser(page).sign_in("token-of-anna")
        assert (status, answer["error"]) == (503, "store: the database does not answer")
        parts.clock.at += 600
        assert await bob.code() == "store-down"
        parts.store.is_down = False
        assert await bob.code() == ""
