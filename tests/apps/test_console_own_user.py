"""The user of an administrator who has none: made by one click, after which the sign-in goes on as
that user.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec import structs
from tests.apps.running_console import Page, console
from tests.apps.signed_browser import Browser
from tests.apps.submit_forms import FORMS
from tests.apps.tree_writes import FakeWrites
from tests.console.clusters import living_cluster
from tests.console.people_parts import FORBIDDEN, FollowedPeople, member, team
from tests.console.sign_in_parts import FakeRecords, FakeSignInApi, Parts, account
from tests.console.worlds import still_world

from fairlead.apps.console_server import ConsoleSettings
from fairlead.console.http.sign_in.tools import COOKIE, OneTimeCode
from fairlead.console.http.writes import HEADER
from fairlead.model.people.rows import ExternalUser, User, UserRole
from fairlead.model.records.audit import AuditRow

INSTALLER = "system:serviceaccount:kube-system:installer"
BOB = member("bob", "a")
LINK = ExternalUser("kubernetes", INSTALLER, INSTALLER)
NEW = {"userName": "Ruth"}


class Site:
    """A console at which the installer's account is signed in; it may update users."""

    def __init__(
        self,
        page: Page,
        parts: Parts,
        people: FollowedPeople,
        code: OneTimeCode,
        audit: list[AuditRow],
        writes: FakeWrites,
    ) -> None:
        self.page, self.parts, self.people, self.code = page, parts, people, code
        self.api, self.audit, self.writes = parts.api, audit, writes
        self.prefix = ""

    async def signed_in(self, token: str = "token-of-installer") -> Browser:
        made = await Browser(self.page, self.prefix).signed_in(token)
        return await csrf(made)


async def csrf(browser: Browser) -> Browser:
    browser.headers[HEADER] = (await browser.me())["csrf"]
    return browser


@asynccontextmanager
async def site(*users: User, settings: ConsoleSettings | None = None) -> AsyncIterator[Site]:
    api = FakeSignInApi((BOB, *users), (team("a"),))
    api.owners["token-of-installer"] = account("installer", "kube-system")
    api.owners["token-of-stranger"] = account("stranger")
    api.makers |= {INSTALLER, "system:serviceaccount:kube-ai:stranger"}
    records = FakeRecords()
    parts = Parts(api, records=records)
    people = FollowedPeople((BOB, *users), (team("a"),), api.change, parts.clock)
    code = OneTimeCode(monotonic=parts.clock)
    base = f"/{settings.base_path}/" if settings else "/"
    desk = parts.desk(code=code, base_path=base)
    writes = FakeWrites()
    world = structs.replace(still_world(living_cluster()), people=people, writes=writes)
    async with console(world, settings, desk=desk, forms=FORMS) as page:
        yield Site(page, parts, people, code, records.audit, writes)


async def test_a_click_makes_the_user_and_the_sign_in_goes_on_as_it() -> None:
    async with site() as it:
        browser = await it.signed_in()
        (before,) = it.parts.store.rows.values()
        old = dict(browser.cookies)
        it.parts.clock.at += 600
        status, made = await browser.send("/me/user", "POST", NEW)
        assert (status, made["id"], made["role"]) == (201, "ruth", "admin"), made
        assert it.people.users["ruth"].external == LINK
        assert browser.cookies != old
        await it.api.settle()
        me = await browser.me()
        assert (me["user"]["id"], me["user"]["role"], me["way"]) == ("ruth", "admin", "token")
        it.parts.clock.at += 600
        assert (await browser.me())["user"]["id"] == "ruth", "an older sign-in would not count"
        (after,) = it.parts.store.rows.values()
        assert (after.user, after.ends_at) == ("ruth", before.ends_at)
        assert (after.groups, after.source_ip) == (before.groups, before.source_ip)
        assert after.groups and after.hash != before.hash and after.csrf != before.csrf
        stale = Browser(it.page)
        stale.cookies = old
        assert await stale.code() == "signed-out"


async def test_a_later_sign_in_of_the_account_is_the_user() -> None:
    async with site() as it:
        first = await it.signed_in()
        assert (await first.send("/me/user", "POST", NEW))[0] == 201
        await it.api.settle()
        assert (await (await it.signed_in()).me())["user"]["id"] == "ruth"
        it.api.makers.discard(INSTALLER)
        it.parts.clock.at += 2
        assert (await first.me())["user"]["role"] == "admin", "the User decides, and not that right"


async def test_another_sign_in_that_is_older_has_to_sign_in_again() -> None:
    async with site() as it:
        older, browser = await it.signed_in(), await it.signed_in()
        it.parts.clock.at += 600
        assert (await browser.send("/me/user", "POST", NEW))[0] == 201
        await it.api.settle()
        status, answer = await older.send("/me")
        assert (status, answer["code"]) == (403, "no-user")
        assert answer["error"] == "this sign-in began before the user `ruth` was made"
        assert answer["hint"] == "sign in again"


async def test_the_audit_has_who_made_the_user() -> None:
    async with site() as it:
        browser = await it.signed_in()
        await browser.send("/me/user", "POST", NEW)
        await it.api.settle()
        await csrf(browser)
        await browser.send("/me/user", "POST", NEW)
        seen = [(each.action, str(each.result), each.code, each.actor) for each in it.audit]
        assert seen == [
            ("session.begin", "ok", "", INSTALLER),
            ("users.create", "begun", "", INSTALLER),
            ("session.begin", "ok", "", INSTALLER),
            ("users.create", "ok", "", INSTALLER),
            ("users.create", "refused", "exists", "ruth"),
        ]
        assert {each.target.name for each in it.audit if each.action == "users.create"} == {"ruth"}


async def test_a_user_makes_no_second_one() -> None:
    async with site() as it:
        browser = await it.signed_in()
        assert (await browser.send("/me/user", "POST", NEW))[0] == 201
        await it.api.settle()
        await csrf(browser)
        status, answer = await browser.send("/me/user", "POST", {"userName": "Other"})
        assert (status, answer["code"]) == (409, "exists")
        assert answer["error"] == "you are the user ruth already"
        assert sorted(it.people.users) == ["bob", "ruth"]


async def test_before_the_console_has_seen_the_user_there_is_no_second_one_either() -> None:
    async with site() as it:
        browser = await it.signed_in()
        it.people.users["ruth"] = structs.replace(member("ruth"), external=LINK)
        status, answer = await browser.send("/me/user", "POST", {"userName": "Other"})
        assert (status, answer["fields"][0]["path"]) == (422, "external.uid"), answer
        assert it.people.calls == []


@pytest.mark.parametrize(
    ("token", "status", "code", "error"),
    [
        ("token-of-bob", 403, "forbidden", "a researcher may not create the users"),
        (
            "token-of-stranger",
            409,
            "blocked",
            "only a user of its name has the account system:serviceaccount:kube-ai:stranger",
        ),
    ],
)
async def test_who_may_not_make_a_user_of_this_account(
    token: str, status: int, code: str, error: str
) -> None:
    async with site() as it:
        browser = await it.signed_in(token)
        found, answer = await browser.send("/me/user", "POST", NEW)
        assert (found, answer["code"], answer["error"]) == (status, code, error)
        assert it.people.calls == []


async def test_the_one_time_code_stands_for_the_servers_own_user_and_is_linked_to_none() -> None:
    linked = structs.replace(member("ruth"), external=ExternalUser("kubernetes", "operator"))
    async with site(linked) as it:
        browser = await csrf(await Browser(it.page).signed_in(it.code.text, "code"))
        user = (await browser.me())["user"]
        assert (user["id"], user["role"]) == ("", "admin")
        status, answer = await browser.send("/me/user", "POST", NEW)
        assert (status, answer["code"]) == (403, "forbidden")
        assert it.people.calls == []


async def test_a_name_that_makes_no_id_or_one_that_exists_is_refused() -> None:
    async with site() as it:
        browser = await it.signed_in()
        for name, status, code in (("李", 422, "invalid"), ("Bob", 409, "exists")):
            found, answer = await browser.send("/me/user", "POST", {"userName": name})
            assert (found, answer["code"]) == (status, code)
            assert answer["fields"][0]["path"] == "userName"
        assert it.people.calls == []


async def test_a_program_makes_its_user_and_is_it_at_the_next_request() -> None:
    async with site() as it:
        program = Browser(it.page, Authorization="Bearer token-of-installer")
        assert (await program.send("/me/user", "POST", NEW))[0] == 201
        await it.api.settle()
        me = await program.me()
        assert (me["user"]["id"], me["way"]) == ("ruth", "bearer")
        assert not program.cookies and not it.parts.store.rows


async def test_a_preview_shows_the_user_and_leaves_the_sign_in_as_it_is() -> None:
    async with site() as it:
        browser = await it.signed_in()
        old = dict(browser.cookies)
        status, answer = await browser.send("/me/user?dryRun=true", "POST", NEW)
        assert (status, answer["valid"]) == (200, True)
        assert answer["effects"][0] == {
            "verb": "create",
            "kind": "User",
            "namespace": "kube-ai",
            "name": "ruth",
        }
        assert browser.cookies == old and it.people.calls == []
        assert (await browser.me())["user"]["id"] == ""


async def test_an_api_server_that_refuses_leaves_the_sign_in_as_it_is() -> None:
    async with site() as it:
        browser = await it.signed_in()
        old, rows = dict(browser.cookies), dict(it.parts.store.rows)
        it.people.failure = FORBIDDEN
        assert (await browser.send("/me/user", "POST", NEW))[0] == 403
        assert (browser.cookies, it.parts.store.rows) == (old, rows)
        assert (await browser.me())["user"]["id"] == ""


async def test_without_a_store_no_user_is_made() -> None:
    async with site() as it:
        browser = await it.signed_in()
        it.parts.store.is_down = True
        assert (await browser.send("/me/user", "POST", NEW))[0] == 503
        assert it.people.calls == []


async def test_the_new_cookie_is_as_far_out_of_reach_as_the_first() -> None:
    settings = ConsoleSettings(base_path="gpu/console")
    async with site(settings=settings) as it:
        it.prefix = "/gpu/console"
        browser = await it.signed_in()
        before = {name: browser.set[COOKIE][name] for name in ("path", "httponly", "samesite")}
        assert before["path"] == "/gpu/console/"
        browser.set.clear()
        assert (await browser.send("/me/user", "POST", NEW))[0] == 201
        assert {name: browser.set[COOKIE][name] for name in before} == before


async def test_a_user_who_is_disabled_is_out_although_the_account_may_make_users() -> None:
    async with site() as it:
        browser = await it.signed_in()
        assert (await browser.send("/me/user", "POST", NEW))[0] == 201
        await it.api.settle()
        assert (await browser.me())["user"]["id"] == "ruth"
        ruth = it.people.users["ruth"]
        it.api.change(structs.replace(ruth, is_disabled=True))
        await it.api.settle()
        program = Browser(it.page, Authorization="Bearer token-of-installer")
        for each in (browser, program, Browser(it.page)):
            if each.cookies or each.headers:
                assert await each.code() in ("no-user", "signed-out")
            else:
                status, answer = await each.sign_in("token-of-installer")
                assert (status, answer["error"]) == (403, "the user `ruth` is disabled")
        it.api.change(ruth)
        await it.api.settle()
        assert await browser.code() == "signed-out", "enabling brings no sign-in back"


async def test_before_the_user_is_bound_nothing_is_asked_as_its_account() -> None:
    """Another program may have made a ServiceAccount of this name."""
    job = {"type": "mpijob", "namespace": "team-a", "name": "new", "command": "x"}
    asked = (
        ("/nodes/gpu-1", "PATCH", {"schedulable": False}),
        ("/jobs/team-a/pytorchjob/bert", "PATCH", {"suspended": True}),
        ("/jobs/team-a/pytorchjob/bert", "DELETE", None),
        ("/jobs", "POST", {**job, "flags": {"image": "app:1", "workers": "1", "gpus": "1"}}),
    )
    async with site() as it:
        it.people.is_away = True
        browser = await it.signed_in()
        assert (await browser.send("/me/user", "POST", NEW))[0] == 201
        await it.api.settle()
        await csrf(browser)
        for path, method, body in asked:
            status, answer = await browser.send(path, method, body)
            assert (status, answer["code"]) == (403, "forbidden"), answer
            assert answer["error"] == (
                "the user `ruth` has no ServiceAccount of Fairlead's yet, and the API server is "
                "asked as that account"
            )
        assert it.writes.asked == []
        it.people.bind("ruth")
        await it.api.settle()
        assert (await browser.send(*asked[0]))[0] == 200
        (sent,) = it.writes.asked
        assert sent[1] == "system:serviceaccount:kube-ai:ruth"


async def test_two_users_of_one_account_sign_in_as_neither() -> None:
    users = [
        structs.replace(member(name, role=UserRole.ADMIN), external=LINK)
        for name in ("ruth", "ruth-b")
    ]
    async with site(*users) as it:
        status, answer = await Browser(it.page).sign_in("token-of-installer")
        assert (status, answer["code"]) == (403, "no-user")
        assert answer["error"].endswith(": `ruth`, `ruth-b`")
