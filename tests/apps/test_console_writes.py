"""Writes of the console over HTTP: their one frame, the audit, users, groups and credentials."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs
from tests.apps.described_answers import OF_PEOPLE, check_against, description
from tests.apps.running_console import Page, console
from tests.apps.signed_browser import Browser
from tests.console.clusters import living_cluster
from tests.console.people_parts import FORBIDDEN, MemoryPeople, member, team
from tests.console.sign_in_parts import FakeSignInApi, Parts
from tests.console.worlds import still_world
from yarl import URL

from fairlead.apps.console_server import ConsoleSettings
from fairlead.console.http.writes import HEADER
from fairlead.console.http.writing.credentials import MOST_VALID
from fairlead.console.pages.endpoints import BASE, ENDPOINTS
from fairlead.edge.store.address import store_address
from fairlead.edge.store.opened import open_store
from fairlead.edge.store.sql_store import SqlStore
from fairlead.errors import OutsideError, StoreDown
from fairlead.model.people.rows import UserRole, UserWork
from fairlead.model.records.audit import AuditFilter, AuditResult, AuditRow

ANNA, BOB = member("anna", role=UserRole.ADMIN), member("bob", "a")
NEW = {"userName": "Eve", "groups": ["a"]}


class Trail:
    """The store's audit, which a test watches, and takes away."""

    def __init__(self, store: SqlStore, people: MemoryPeople) -> None:
        self.store, self.people = store, people
        self.rows: list[tuple[AuditRow, int]] = []
        self.is_down = False
        self.ends_down = False

    async def append_audit(self, row: AuditRow) -> int:
        is_end = bool(row.begun_id)
        if self.is_down or (self.ends_down and is_end):
            raise StoreDown("the database does not answer")
        self.rows.append((row, len(self.people.calls)))
        return await self.store.append_audit(row)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


class Site:
    """A console at which Anna, an administrator, and Bob, a researcher, are signed in."""

    def __init__(self, page: Page, people: MemoryPeople, trail: Trail) -> None:
        self.page, self.people, self.trail = page, people, trail
        self.anna, self.bob = Browser(page), Browser(page)

    async def begin(self) -> None:
        for browser, name in ((self.anna, "anna"), (self.bob, "bob")):
            await browser.signed_in(f"token-of-{name}")
            browser.headers[HEADER] = (await browser.me())["csrf"]
        self.trail.rows.clear()

    async def ends(self) -> list[tuple[str, str, str]]:
        """Action, result and code of the rows that a page of the audit shows, oldest first."""
        rows = await self.trail.store.audit_page(AuditFilter(), 100)
        return [
            (each.action, str(each.result), each.code)
            for each in reversed(rows)
            if not each.action.startswith("session")
        ]


@asynccontextmanager
async def site(path: Path, *work: UserWork) -> AsyncIterator[Site]:
    users, groups = (ANNA, BOB), (team("a"), team("b"))
    people = MemoryPeople(users, groups, work)
    store = await open_store(store_address(f"sqlite:///{path / 'store.sqlite'}"))
    trail = Trail(store, people)
    api = FakeSignInApi(users, groups)
    api.owners["token-of-root"] = api.own
    desk = Parts(api, records=trail).desk()
    world = structs.replace(still_world(living_cluster()), people=people)
    try:
        async with console(world, desk=desk) as page:
            made = Site(page, people, trail)
            await made.begin()
            yield made
    finally:
        await store.close()


# --- the frame ------------------------------------------------------------------------------------


async def test_a_write_is_noted_before_it_is_sent_and_after_it_ended(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        status, answer = await it.anna.send("/users", "POST", NEW, X_Request_Id="req-1")
        assert (status, answer["id"]) == (201, "eve"), answer
        (begun, before), (ended, after) = it.trail.rows
        assert (before, after) == (0, 1), "the first row is stored before the call, not after it"
        assert (begun.result, ended.result) == (AuditResult.BEGUN, AuditResult.OK)
        assert ended.begun_id == 1 + 2, "two sign-ins came before"
        for row in (begun, ended):
            assert (row.actor, row.role, row.action) == ("anna", "admin", "users.create")
            assert (row.target.kind, row.target.name) == ("User", "eve")
            assert (row.request_id, row.source_ip) == ("req-1", "127.0.0.1")
        assert await it.ends() == [("users.create", "ok", "")]


async def test_without_a_row_nothing_is_written(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        it.trail.is_down = True
        status, answer = await it.anna.send("/users", "POST", NEW)
        assert (status, answer["code"]) == (503, "store-down")
        assert it.people.calls == []
        assert (await it.anna.send("/users"))[0] == 200, "reads go on"


async def test_a_write_whose_end_cannot_be_noted_is_done_and_its_result_unknown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with site(tmp_path) as it:
        it.trail.ends_down = True
        with caplog.at_level(logging.WARNING):
            assert (await it.anna.send("/users", "POST", NEW))[0] == 201
        assert "users.create by anna" in caplog.text
        assert await it.ends() == [("users.create", "begun", "")]


@pytest.mark.parametrize(
    ("failure", "status", "result"),
    [
        (FORBIDDEN, 403, "refused"),
        (OutsideError("kubernetes", "no answer"), 502, "failed"),
        (RuntimeError("secret"), 500, "failed"),
    ],
)
async def test_how_a_write_failed_is_noted(
    tmp_path: Path, failure: Exception, status: int, result: str
) -> None:
    async with site(tmp_path) as it:
        it.people.failure = failure
        answered, answer = await it.anna.send("/users", "POST", NEW)
        assert answered == status
        assert await it.ends() == [("users.create", result, answer["code"])]


async def test_every_write_needs_the_token_of_its_page(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        del it.anna.headers[HEADER]
        for endpoint in (each for each in ENDPOINTS if each.action):
            path = filled(endpoint.path)
            status, answer = await it.anna.send(path, endpoint.method, {}, If_Match='"1"')
            assert (status, answer["code"]) == (403, "csrf"), path
        assert it.people.calls == []


async def test_a_program_needs_none(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        program = Browser(it.page, Authorization="Bearer token-of-anna")
        assert (await program.send("/users", "POST", NEW))[0] == 201


async def test_a_researcher_writes_nothing_of_administrators(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        for endpoint in ENDPOINTS:
            if endpoint.path.startswith(("/users", "/groups", "/audit")):
                status, answer = await it.bob.send(
                    filled(endpoint.path), endpoint.method, endpoint.body and {}
                )
                assert (status, answer["code"]) == (403, "forbidden"), endpoint.name
        assert it.people.calls == []
        assert ("users.create", "refused", "forbidden") in await it.ends()


async def test_the_row_of_a_refused_write_names_its_object(tmp_path: Path) -> None:
    """Also where it was refused before it was planned, and its object was not read."""
    kinds = {
        "change_node": "Node",
        "write_quota_tree": "ElasticQuotaTree",
        **dict.fromkeys(("create_user", "change_user", "delete_user"), "User"),
        **dict.fromkeys(("create_group", "change_group", "delete_group"), "UserGroup"),
        **dict.fromkeys(("issue_token", "issue_kubeconfig", "revoke_tokens"), "User"),
        "revoke_token": "Credential",
    }
    refused = [each for each in ENDPOINTS if each.action and each.name in kinds]
    assert {each.name for each in refused} == set(kinds)
    async with site(tmp_path) as it:
        for endpoint in refused:
            sent = await it.bob.send(
                filled(endpoint.path), endpoint.method, endpoint.body and {}, If_Match='"1"'
            )
            assert sent[0] == 403, endpoint.name
        malformed = await it.anna.send("/users/bob", "PUT", {"role": 1}, If_Match='"1"')
        assert malformed[0] == 422
        rows = [
            each
            for each in reversed(await it.trail.store.audit_page(AuditFilter(), 100))
            if each.result == AuditResult.REFUSED
        ]
    assert [each.target.kind for each in rows] == [*(kinds[each.name] for each in refused), "User"]
    assert (rows[-1].target.namespace, rows[-1].target.name) == ("kube-ai", "bob")


async def test_without_sign_in_the_console_is_read_only() -> None:
    people = MemoryPeople((ANNA,), ())
    world = structs.replace(still_world(living_cluster()), people=people)
    settings = ConsoleSettings(sign_in_hint="as this cluster does it")
    async with console(world, settings=settings) as page:
        browser = Browser(page)
        browser.headers[HEADER] = (await browser.me())["csrf"]
        for endpoint in (each for each in ENDPOINTS if each.action):
            status, answer = await browser.send(filled(endpoint.path), endpoint.method, {})
            assert (status, answer["code"]) == (403, "read-only"), endpoint.name
            assert answer["hint"] == settings.sign_in_hint, endpoint.name
        for path in ("/users", "/groups", "/audit", "/quota/tree/versions", "/me/kubeconfigs"):
            method = "POST" if path == "/me/kubeconfigs" else "GET"
            body = {} if method == "POST" else None
            _, answer = await browser.send(path, method, body)
            assert answer["hint"] == settings.sign_in_hint, path
        assert people.calls == []


async def test_all_faults_of_a_body_come_at_once(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        bad = {"userName": 3, "role": "root", "groups": [1]}
        status, answer = await it.anna.send("/users", "POST", bad)
        assert (status, answer["code"]) == (422, "invalid")
        assert {each["path"] for each in answer["fields"]} == {"userName", "role", "groups[0]"}
        status, answer = await it.anna.send("/users", "POST", {"userName": "?", "groups": ["x"]})
        assert {(each["path"], each["rule"]) for each in answer["fields"]} == {
            ("userName", "name"),
            ("groups[0]", "no-group"),
        }
        assert it.people.calls == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"userName": "x", "more": 1}, 400, "malformed"),
        (b"{", 400, "malformed"),
        (b"[]", 400, "malformed"),
        (b'{"userName": "' + b"x" * (1 << 20) + b'"}', 413, "too-large"),
        ({}, 422, "invalid"),
    ],
)
async def test_a_body_that_is_none(tmp_path: Path, body: Any, status: int, code: str) -> None:
    async with site(tmp_path) as it:
        answered, answer = await it.anna.send("/users", "POST", body)
        assert (answered, answer["code"]) == (status, code)
        assert answer["hint"]


@pytest.mark.parametrize(
    ("name", "made", "status", "rule"),
    [
        ("Eve_Smith@Example", "eve-smith-example", 201, ""),
        ("x" * 63, "x" * 63, 201, ""),
        ("x" * 64, "", 422, "name"),
        ("eve 🚀", "eve", 201, ""),
        ("🚀", "", 422, "name"),
        ("", "", 422, "name"),
        ("default", "", 422, "name"),
        ("B@OB", "b-ob", 201, ""),
        ("bob_", "", 409, "exists"),
        ("BOB", "", 409, "exists"),
    ],
)
async def test_a_name_makes_one_id_or_none(
    tmp_path: Path, name: str, made: str, status: int, rule: str
) -> None:
    async with site(tmp_path) as it:
        answered, answer = await it.anna.send("/users", "POST", {**NEW, "userName": name})
        assert answered == status, answer
        if made:
            assert (answer["id"], answer["userName"]) == (made, name)
            assert it.people.calls == [f"create user {made}"]
        else:
            assert [(each["path"], each["rule"]) for each in answer["fields"]] == [
                ("userName", rule)
            ]
            assert answer["hint"] and it.people.calls == []


@pytest.mark.parametrize(
    "segment",
    ["..", "%2e%2e", "a%2fb", "..%2fbob", "bob%2f", "bob%0a", "%0d%0aX-A:1", "%00", "b%20b"],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_no_other_user_is_found_by_an_unexpected_path(
    tmp_path: Path, segment: str, method: str
) -> None:
    async with site(tmp_path) as it:
        change = {"userName": "X", "role": "researcher", "groups": ["a"], "disabled": False}
        bodies = {"users": change, "group": {"groupName": "x"}}
        headers = {**it.anna.headers, "Content-Type": "application/json", "If-Match": "uid-bob.1"}
        cookies = "; ".join(f"{key}={value}" for key, value in it.anna.cookies.items())
        for path in (f"/users/{segment}", f"/users/{segment}/tokens", f"/groups/{segment}"):
            async with it.page.session.request(
                method,
                URL(f"{it.page.url}{BASE}{path}", encoded=True),
                data=json.dumps(bodies[path[1:6]]) if method == "PUT" else None,
                headers={**headers, "Cookie": cookies},
            ) as answered:
                assert answered.status in (404, 405), path
                assert "X-A" not in answered.headers
                assert json.loads(await answered.read())["code"] in ("not-found", "malformed")
        assert it.people.calls == []
        rows = await it.trail.store.audit_page(AuditFilter(), 100)
        assert {str(each.result) for each in rows if each.action.startswith("users")} <= {"refused"}


async def test_a_preview_changes_nothing(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        status, answer = await it.anna.send("/users?dryRun=true", "POST", NEW)
        assert (status, answer["valid"], answer["fields"]) == (200, True, [])
        assert [(each["verb"], each["kind"], each["name"]) for each in answer["effects"]] == [
            ("create", "User", "eve"),
            ("create", "ClusterRoleBinding", "eve:clusterRole:fairlead-researcher-cluster"),
            ("create", "RoleBinding", "eve:a-ns:fairlead-researcher"),
        ]
        status, answer = await it.anna.send("/users?dryRun=true", "POST", {"userName": 1})
        assert (status, answer["valid"]) == (200, False)
        assert (await it.anna.send("/users?dryRun=yes", "POST", NEW))[0] == 400
        assert (it.people.calls, await it.ends()) == ([], [])


async def test_a_change_names_the_version_that_was_read(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        change = {"userName": "Robert", "role": "researcher", "groups": ["a"], "disabled": False}
        assert (await it.anna.send("/users/bob", "PUT", change))[0] == 400
        version = f"{it.people.users['bob'].uid}.1"
        two = [
            await it.anna.send("/users/bob", "PUT", {**change, "userName": name}, If_Match=version)
            for name in ("Robert", "Bobby")
        ]
        assert [status for status, _ in two] == [200, 409]
        refused = two[1][1]
        assert (refused["code"], refused["current"]["userName"]) == ("conflict", "Robert")
        later = refused["current"]["version"]
        assert (await it.anna.send("/users/bob", "PUT", change, If_Match=f'"{later}"'))[0] == 200


async def test_a_write_that_lost_the_race_at_the_api_server_is_a_conflict(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        read = it.people.read

        async def read_before_another() -> Any:
            record = await read()
            it.people.users["bob"] = structs.replace(BOB, generation=9)
            return record

        it.people.read = read_before_another  # type: ignore[method-assign]
        change = {"userName": "Robert", "role": "researcher", "groups": ["a"], "disabled": False}
        status, answer = await it.anna.send("/users/bob", "PUT", change, If_Match="uid-bob.1")
        assert (status, answer["code"]) == (409, "conflict")


async def test_a_repeated_write_is_carried_out_once(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        answers = [
            await it.anna.send("/users", "POST", NEW, Idempotency_Key="one") for _ in range(2)
        ]
        assert answers[0] == answers[1] and answers[0][0] == 201
        assert it.people.calls == ["create user eve"]


async def test_a_key_is_not_used_up_by_a_write_that_was_not_noted(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        it.trail.is_down = True
        assert (await it.anna.send("/users", "POST", NEW, Idempotency_Key="one"))[0] == 503
        assert it.people.calls == []
        it.trail.is_down = False
        assert (await it.anna.send("/users", "POST", NEW, Idempotency_Key="one"))[0] == 201
        assert it.people.calls == ["create user eve"]


async def test_two_at_once_with_one_key_are_one(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        order = {"lifetimeSeconds": 600}
        path = "/users/bob/tokens"
        answers = await asyncio.gather(
            *(it.anna.send(path, "POST", order, Idempotency_Key="one") for _ in range(5))
        )
        assert sorted(status for status, _ in answers) == [201, 409, 409, 409, 409]
        later = await it.anna.send(path, "POST", order, Idempotency_Key="one")
        assert (later[0], later[1]["code"]) == (409, "exists"), "a token is not kept"
        assert it.people.calls == ["issue bob 600"]


async def test_what_is_read_has_exactly_the_keys_that_are_described(tmp_path: Path) -> None:
    described = description()
    async with site(tmp_path) as it:
        await it.anna.send("/users/bob/tokens", "POST", {})
        await it.anna.send("/me/tokens", "POST", {})
        read = [each for each in ENDPOINTS if each.name in OF_PEOPLE]
        assert len(read) == len(OF_PEOPLE)
        for endpoint in read:
            status, answer = await it.anna.send(filled(endpoint.path))
            assert status == 200, endpoint.name
            operation = described["paths"][endpoint.path]["get"]["responses"]["200"]
            schema = operation["content"]["application/json"]["schema"]
            check_against(answer, schema, described["components"]["schemas"])


# --- users and groups -----------------------------------------------------------------------------


async def test_a_name_that_is_taken_exists_already(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        status, answer = await it.anna.send("/users", "POST", {**NEW, "userName": "BOB"})
        assert (status, answer["code"]) == (409, "exists")
        assert "`bob`" in answer["error"]


async def test_the_last_administrator_and_oneself_stay(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        change = {"userName": "Anna", "role": "admin", "groups": [], "disabled": True}
        status, answer = await it.anna.send("/users/anna", "PUT", change, If_Match="uid-anna.1")
        assert (status, answer["code"]) == (409, "blocked")
        status, answer = await it.anna.send("/users/anna", "DELETE")
        assert (status, answer["code"]) == (409, "blocked")
        assert answer["error"] == "you cannot delete yourself"
        assert it.people.calls == []


async def test_unfinished_work_blocks_and_is_listed(tmp_path: Path) -> None:
    work = UserWork("pod", "a-ns", "train-0", "bob")
    async with site(tmp_path, work) as it:
        status, answer = await it.anna.send("/users/bob", "DELETE")
        assert (status, answer["code"]) == (409, "blocked")
        assert [each["path"] for each in answer["fields"]] == ["a-ns/pod/train-0"]
        change = {"userName": "Bob", "role": "researcher", "groups": ["b"], "disabled": False}
        status, answer = await it.anna.send("/users/bob", "PUT", change, If_Match="uid-bob.1")
        assert (status, answer["code"]) == (409, "blocked")
        assert (await it.anna.send("/users/bob?force=true", "DELETE"))[0] == 200
        assert it.people.calls == ["delete user bob by force"]


async def test_a_group_has_a_free_leaf(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        for leaf, status in (("root", 422), ("root.x", 422), ("root.a", 409), ("root.c", 201)):
            order = {"groupName": "teamC", "leaf": leaf, "users": ["bob"]}
            answered, answer = await it.anna.send("/groups", "POST", order)
            assert answered == status, answer
        assert it.people.calls == ["create group teamc", "change user bob"]
        assert answer["users"] == ["bob"]


async def test_a_leaf_is_renamed_while_its_group_is_edited(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        before = (await it.anna.send("/groups/a"))[1]
        renamed = structs.replace(it.people.groups["a"], leaf="root.a2", generation=2)
        it.people.groups["a"] = renamed
        order = {"groupName": "a", "users": ["bob"], "defaultRoles": ["view"]}
        assert (await it.anna.send("/groups/a", "PUT", order))[0] == 400, "without If-Match"
        status, answer = await it.anna.send("/groups/a", "PUT", order, If_Match=before["version"])
        assert (status, answer["code"]) == (409, "conflict")
        assert answer["current"]["leaf"] == "root.a2"
        assert it.people.calls == [] and it.people.groups["a"] == renamed


async def test_a_group_changes_its_users_and_keeps_those_with_work(tmp_path: Path) -> None:
    async with site(tmp_path, UserWork("pod", "a-ns", "train-0", "bob")) as it:
        _, groups = await it.anna.send("/groups")
        version = (await it.anna.send("/groups/a"))[1]["version"]
        assert groups["total"] == 2
        order = {"groupName": "a", "users": []}
        status, answer = await it.anna.send("/groups/a", "PUT", order, If_Match="stale")
        assert (status, answer["code"]) == (409, "conflict")
        version = answer["current"]["version"]
        status, answer = await it.anna.send("/groups/a", "PUT", order, If_Match=version)
        assert (status, answer["fields"][0]["path"]) == (409, "users.bob")
        assert (await it.anna.send("/groups/a", "DELETE"))[1]["code"] == "blocked"
        assert it.people.calls == []


# --- credentials ----------------------------------------------------------------------------------


async def test_a_token_stands_in_one_answer_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with site(tmp_path) as it:
            status, made = await it.anna.send("/users/bob/tokens", "POST", {"note": "ci"})
            assert (status, made["token"]) == (201, "token-of-bob-0")
            sent = it.page.url + BASE + "/users/bob/kubeconfigs"
            headers = {
                **it.anna.headers,
                "Content-Type": "application/json",
                "Cookie": "; ".join(f"{key}={value}" for key, value in it.anna.cookies.items()),
            }
            async with it.page.session.post(sent, data="{}", headers=headers) as answered:
                assert answered.headers["Cache-Control"] == "no-store"
                kubeconfig = json.loads(await answered.read())
            assert kubeconfig["fileName"] == "kubeconfig-bob.yaml"
            assert 'server: "https://api.example:6443"' in kubeconfig["kubeconfig"]
            assert "namespace: a-ns" in kubeconfig["kubeconfig"]
            listed = (await it.anna.send("/users/bob/tokens"))[1]
            assert [each["id"] for each in listed["items"]] == ["bob-0", "bob-1"]
            assert listed["items"][0]["issuedBy"] == "anna"
            audit = [row async for row in it.trail.store.audit_rows(AuditFilter())]
            assert "token-of" not in repr(audit) + json.dumps(listed) + caplog.text
            records = await it.trail.store.credentials("bob")
            assert {each.name for each in records} == {"bob-0", "bob-1"}
            assert (await it.anna.send("/users/bob/tokens/bob-0", "DELETE"))[0] == 200
            assert (await it.anna.send("/users/bob/tokens/bob-0", "DELETE"))[0] == 404
            assert list(it.people.secrets) == ["bob-1"]
            assert any(each.revoked_at for each in await it.trail.store.credentials("bob"))


@pytest.mark.parametrize("seconds", [0, 599, 30 * 86_400 + 1])
async def test_a_lifetime_has_bounds(tmp_path: Path, seconds: int) -> None:
    async with site(tmp_path) as it:
        order = {"lifetimeSeconds": seconds}
        status, answer = await it.anna.send("/users/bob/tokens", "POST", order)
        assert (status, answer["fields"][0]["path"]) == (422, "lifetimeSeconds")


async def test_a_user_has_a_bounded_number_of_credentials(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        made = [await it.bob.send("/me/tokens", "POST", {}) for _ in range(MOST_VALID + 1)]
        assert [status for status, _ in made] == [201] * MOST_VALID + [409]
        status, answer = await it.bob.send("/me/kubeconfigs", "POST", {})
        assert (status, answer["code"]) == (409, "blocked")


async def test_an_own_kubeconfig_is_a_write_as_every_other(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        path, order = "/me/kubeconfigs", {"note": "laptop"}
        status, answer = await it.bob.send(f"{path}?dryRun=true", "POST", order)
        assert (status, answer["valid"], it.people.calls) == (200, True, [])
        status, made = await it.bob.send(path, "POST", order, Idempotency_Key="one")
        assert (status, made["id"], made["fileName"]) == (201, "bob-0", "kubeconfig-bob.yaml")
        read = yaml.safe_load(made["kubeconfig"])
        assert read["users"] == [{"name": "bob", "user": {"token": "token-of-bob-0"}}]
        assert read["contexts"][0]["context"]["namespace"] == "a-ns"
        assert read["clusters"][0]["cluster"]["server"] == "https://api.example:6443"
        again = await it.bob.send(path, "POST", order, Idempotency_Key="one")
        assert (again[0], again[1]["code"]) == (409, "exists")
        assert it.people.calls == ["issue bob 28800"]
        assert await it.ends() == [
            ("credentials.create", "ok", ""),
            ("credentials.create", "refused", "exists"),
        ]
        rows = [(row.actor, row.target.name) for row, _ in it.trail.rows]
        assert set(rows) == {("bob", "bob")}
        status, answer = await it.bob.send(path, "POST", {"namespace": "b-ns"})
        assert (status, answer["fields"][0]["rule"]) == (422, "no-right")
        it.trail.is_down = True
        assert (await it.bob.send(path, "POST", {}))[0] == 503
        assert it.people.calls == ["issue bob 28800"]


@pytest.mark.parametrize(
    ("order", "path"),
    [
        ({"lifetimeSeconds": 599}, "lifetimeSeconds"),
        ({"lifetimeSeconds": "1h"}, "lifetimeSeconds"),
        ({"note": "x" * 201}, "note"),
        ({"note": "a\nb"}, "note"),
    ],
    ids=str,
)
async def test_an_own_kubeconfig_has_bounds(tmp_path: Path, order: Any, path: str) -> None:
    async with site(tmp_path) as it:
        status, answer = await it.bob.send("/me/kubeconfigs", "POST", order)
        assert (status, [each["path"] for each in answer["fields"]]) == (422, [path]), answer
        status, _ = await it.bob.send("/me/kubeconfigs", "POST", {**order, "user": "anna"})
        assert status == 400, "the user is the one who is signed in"
        assert it.people.calls == []


async def test_who_is_no_user_gets_no_credential(tmp_path: Path) -> None:
    """The account of the first run, which may make users."""
    async with site(tmp_path) as it:
        first = await Browser(it.page).signed_in("token-of-root")
        first.headers[HEADER] = (await first.me())["csrf"]
        status, answer = await first.send("/me/kubeconfigs", "POST", {})
        assert (status, answer["code"]) == (409, "blocked")
        assert answer["hint"] == "make a user for yourself, and sign in as that user"


async def test_a_user_has_the_own_credentials_and_no_others(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        await it.anna.send("/users/anna/tokens", "POST", {})
        assert (await it.bob.send("/me/tokens", "POST", {}))[0] == 201
        listed = (await it.bob.send("/me/tokens"))[1]["items"]
        assert [each["user"] for each in listed] == ["bob"]
        assert (await it.bob.send("/me/tokens/anna-0", "DELETE"))[0] == 404
        status, answer = await it.anna.send("/users/bob/kubeconfigs", "POST", {"namespace": "b-ns"})
        assert (status, answer["fields"][0]["rule"]) == (422, "no-right")


async def test_a_credential_that_cannot_be_recorded_is_revoked(tmp_path: Path) -> None:
    async with site(tmp_path) as it:

        async def full(credential: Any) -> None:
            raise StoreDown("the disk is full")

        it.trail.store.add_credential = full  # type: ignore[method-assign]
        assert (await it.anna.send("/users/bob/tokens", "POST", {}))[0] == 503
        assert it.people.secrets == {}


# --- the audit ------------------------------------------------------------------------------------


async def test_the_audit_is_filtered_paged_and_downloaded(tmp_path: Path) -> None:
    async with site(tmp_path) as it:
        for name in ("u1", "u2", "=HYPERLINK(1)"):
            await it.anna.send("/users", "POST", {"userName": name, "groups": ["a"]})
        _, page = await it.anna.send("/audit?action=users.create&size=2")
        assert (page["total"], [each["target"]["name"] for each in page["items"]]) == (
            3,
            ["hyperlink-1", "u2"],
        )
        _, rest = await it.anna.send(f"/audit?action=users.create&size=2&before={page['before']}")
        assert [each["target"]["name"] for each in rest["items"]] == ["u1"]
        assert rest["before"] == 0
        assert (await it.anna.send("/audit?q=hyperlink"))[1]["total"] == 1
        text = (await it.anna.send("/audit?action=users.create&format=csv"))[1].decode()
        assert len(text.splitlines()) == 4
        lines = (await it.anna.send("/audit?action=users.create&format=jsonl"))[1]
        assert [json.loads(each)["result"] for each in lines.splitlines()] == ["ok"] * 3
        for bad in ("result=maybe", "since=x", "format=xml", "size=0", "who=me"):
            assert (await it.anna.send(f"/audit?{bad}"))[0] == 400, bad


def filled(path: str) -> str:
    values = {"id": "bob", "name": "a", "token": "t", "namespace": "a-ns", "type": "mpijob"}
    values["claim"] = "raw"
    return path.format(**values)
