"""What a store promises (`ports.Store`), alike in each engine."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

import pytest
from msgspec import structs
from tests.stores.rows import (
    HOUR,
    NOW,
    audit_row,
    credential,
    operation_row,
    sign_in,
    tree_version,
)

from fairlead.edge.store import sql_store
from fairlead.edge.store.address import StoreAddress
from fairlead.edge.store.opened import open_store
from fairlead.edge.store.sql_store import SqlStore
from fairlead.model.records.audit import AuditFilter, AuditResult, AuditTarget
from fairlead.model.records.rows import OwnerKind, UsageOwner
from fairlead.ports import Store

EVERYTHING = AuditFilter()


async def open_twice(address: StoreAddress) -> tuple[SqlStore, SqlStore]:
    """Two replicas of the console. In SQLite they are refused, and yet agree."""
    return await open_store(address), SqlStore(address)


def kept_as_a_port(store: SqlStore) -> Store:
    """mypy compares the class with the port."""
    return store


# sign-ins


async def test_a_sign_in_comes_back_as_it_was(store: SqlStore) -> None:
    row = sign_in()
    await store.add_sign_in(row)
    assert await store.sign_in(row.hash) == row
    assert await store.sign_in("f" * 64) is None


async def test_the_other_replica_knows_a_sign_in_at_once_and_its_end(address: StoreAddress) -> None:
    one, other = await open_twice(address)
    try:
        await one.add_sign_in(sign_in())
        assert await other.sign_in(sign_in().hash) == sign_in()
        assert await other.end_sign_in(sign_in().hash) is True
        assert await one.sign_in(sign_in().hash) is None
        assert await one.end_sign_in(sign_in().hash) is False
    finally:
        await one.close()
        await other.close()


async def test_the_time_of_the_last_use_never_goes_back(store: SqlStore) -> None:
    await store.add_sign_in(sign_in())
    await store.touch_sign_in(sign_in().hash, NOW + HOUR)
    await store.touch_sign_in(sign_in().hash, NOW + 5)
    found = await store.sign_in(sign_in().hash)
    assert found == sign_in(seen_at=NOW + HOUR)


async def test_all_sign_ins_of_a_user_end_and_no_others(store: SqlStore) -> None:
    for number, user in enumerate(("bob", "anna", "bob", ""), start=1):
        await store.add_sign_in(sign_in(number, user=user))
    assert await store.end_sign_ins(user="bob") == 2
    assert await store.end_sign_ins(identity="https://idp.example#bob-4") == 1
    left = [number for number in range(1, 5) if await store.sign_in(f"{number:064x}")]
    assert left == [2]


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_to_end_sign_ins_without_a_user_or_an_identity_is_a_bug(store: SqlStore) -> None:
    with pytest.raises(ValueError):
        await store.end_sign_ins()
    with pytest.raises(ValueError):
        await store.end_sign_ins(user="bob", identity="bob")


async def test_what_is_over_or_was_not_used_expires(store: SqlStore) -> None:
    await store.add_sign_in(sign_in(1, ends_at=NOW + HOUR))
    await store.add_sign_in(sign_in(2, seen_at=NOW - 9 * HOUR))
    await store.add_sign_in(sign_in(3, seen_at=NOW + HOUR))
    assert await store.expire_sign_ins(NOW + 2 * HOUR, NOW) == 2
    left = [number for number in range(1, 4) if await store.sign_in(f"{number:064x}")]
    assert left == [3]


async def test_a_key_is_spent_once_in_both_replicas_together(address: StoreAddress) -> None:
    one, other = await open_twice(address)
    try:
        uses = [each.spend("a" * 64, NOW) for each in (one, other) for _ in range(10)]
        assert sorted(await asyncio.gather(*uses)) == [False] * 19 + [True]
        assert await one.spend("b" * 64, NOW) is True
    finally:
        await one.close()
        await other.close()


async def test_a_spent_key_works_again_only_after_its_end(store: SqlStore) -> None:
    assert await store.spend("a" * 64, NOW) is True
    await store.expire_sign_ins(NOW, 0)
    assert await store.spend("a" * 64, NOW) is False
    await store.expire_sign_ins(NOW + 1, 0)
    assert await store.spend("a" * 64, NOW) is True


# audit


async def test_rows_of_the_audit_come_newest_first_and_whole(store: SqlStore) -> None:
    rows = [audit_row(actor=name, code="invalid") for name in ("anna", "bob", "eve")]
    ids = [await store.append_audit(row) for row in rows]
    assert ids == sorted(set(ids))
    stored = [structs.replace(row, id=id) for row, id in zip(rows, ids, strict=True)]
    assert await store.audit_page(EVERYTHING, 10) == tuple(reversed(stored))
    assert await store.audit_page(EVERYTHING, 2) == (stored[2], stored[1])
    assert await store.audit_page(EVERYTHING, 2, before=ids[1]) == (stored[0],)


async def test_a_begun_write_is_shown_until_its_result_is_known(store: SqlStore) -> None:
    begun = await store.append_audit(audit_row(result=AuditResult.BEGUN))
    lost = await store.append_audit(audit_row(result=AuditResult.BEGUN, actor="eve"))
    assert await store.count_audit(EVERYTHING) == 2
    end = await store.append_audit(audit_row(result=AuditResult.FAILED, begun_id=begun))
    assert [row.id for row in await store.audit_page(EVERYTHING, 10)] == [end, lost]
    assert await store.count_audit(EVERYTHING) == 2
    unknown = AuditFilter(results=(AuditResult.BEGUN,))
    assert [row.id for row in await store.audit_page(unknown, 10)] == [lost]


FILTERS: dict[str, tuple[AuditFilter, str]] = {
    "an actor": (AuditFilter(actors=("anna",)), "ac"),
    "an actor in other letters": (AuditFilter(actors=("ANNA",)), ""),
    "one of two actors": (AuditFilter(actors=("anna", "bob")), "abc"),
    "an action": (AuditFilter(actions=("user.delete",)), "b"),
    "a result": (AuditFilter(results=(AuditResult.REFUSED,)), "b"),
    "a kind": (AuditFilter(target=AuditTarget(kind="User")), "b"),
    "a namespace": (AuditFilter(target=AuditTarget(namespace="kube-system")), "ac"),
    "a name": (AuditFilter(target=AuditTarget(name="50%_off!")), "b"),
    "a request": (AuditFilter(request_id="r-c"), "c"),
    "from a time, inclusive": (AuditFilter(since=NOW + 2), "bc"),
    "until a time, exclusive": (AuditFilter(until=NOW + 2), "a"),
    "text of the summary in any case": (AuditFilter(text="ÜBUNG"), "c"),
    "text with a percent sign": (AuditFilter(text="0%_O"), "b"),
    "a percent sign matches itself only": (AuditFilter(text="quota%update"), ""),
    "an underscore matches itself only": (AuditFilter(text="ann_"), ""),
    "an exclamation mark": (AuditFilter(text="off!"), "b"),
    "a backslash": (AuditFilter(text="\\"), ""),
    "two fields": (AuditFilter(actors=("anna",), since=NOW + 2), "c"),
}


async def test_each_field_of_a_filter_leaves_out_the_other_rows(store: SqlStore) -> None:
    rows = {
        "a": audit_row(at=NOW + 1),
        "b": audit_row(
            at=NOW + 2,
            actor="bob",
            action="user.delete",
            result=AuditResult.REFUSED,
            target=AuditTarget("User", "kube-ai", "50%_off!"),
        ),
        "c": audit_row(at=NOW + 3, request_id="r-c", summary="Übung 名字"),
    }
    names = {await store.append_audit(row): name for name, row in rows.items()}
    for what, (filter, expected) in FILTERS.items():
        page = await store.audit_page(filter, 10)
        assert "".join(sorted(names[row.id] for row in page)) == expected, what
        assert await store.count_audit(filter) == len(expected), what


async def test_an_export_has_every_row_once_oldest_first(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_store, "ROWS_AT_ONCE", 3)
    ids = [await store.append_audit(audit_row(summary=str(number))) for number in range(6)]
    assert [row.id async for row in store.audit_rows(EVERYTHING)] == ids
    ids.append(await store.append_audit(audit_row()))
    assert [row.id async for row in store.audit_rows(EVERYTHING)] == ids
    only = AuditFilter(text="4")
    assert [row.id async for row in store.audit_rows(only)] == [ids[4]]


async def test_whatever_a_client_sends_is_stored(store: SqlStore) -> None:
    """Names with NUL, half of a character, line ends, quotes; and of a hundred kilobytes."""
    name = "a\x00\udc80\n'\";--🚀"
    await store.append_audit(
        audit_row(
            actor="x" * 100_000,
            action="y" * 100_000,
            target=AuditTarget("User", "n" * 100_000, name),
            request_id="z" * 100_000,
            summary="🚀" * 100_000,
        )
    )
    [row] = await store.audit_page(EVERYTHING, 1)
    assert row.target == AuditTarget("User", "n" * 254 + "…", "a␀?\n'\";--🚀")
    assert (row.actor, row.action) == ("x" * 254 + "…", "y" * 190 + "…")
    assert (row.request_id, row.summary) == ("z" * 190 + "…", "🚀" * 4095 + "…")
    assert await store.count_audit(AuditFilter(actors=("x" * 100_000,))) == 1


async def test_rows_past_their_retention_are_removed_and_no_others(store: SqlStore) -> None:
    for at in (NOW - 1, NOW, NOW + 1):
        await store.append_audit(audit_row(at=at))
    assert await store.forget_audit(NOW) == 1
    assert [row.at for row in await store.audit_page(EVERYTHING, 10)] == [NOW + 1, NOW]


async def test_an_id_is_not_used_again_after_its_row_is_removed(store: SqlStore) -> None:
    last = await store.append_audit(audit_row())
    await store.forget_audit(NOW + 1)
    assert await store.append_audit(audit_row()) > last


async def test_two_replicas_append_at_once_and_lose_nothing(address: StoreAddress) -> None:
    one, other = await open_twice(address)
    try:
        rows = [each.append_audit(audit_row()) for _ in range(20) for each in (one, other)]
        ids = await asyncio.gather(*rows)
        assert len(set(ids)) == 40 == await one.count_audit(EVERYTHING)
    finally:
        await one.close()
        await other.close()


# versions of the tree, credentials, owners


async def test_the_last_twenty_versions_of_the_tree_are_kept(store: SqlStore) -> None:
    ids = [await store.add_tree_version(tree_version(number)) for number in range(1, 24)]
    expected = [
        structs.replace(tree_version(number), id=ids[number - 1]) for number in range(4, 24)
    ]
    assert await store.tree_versions() == tuple(reversed(expected))


async def test_a_large_tree_is_stored_whole(store: SqlStore) -> None:
    text = '{"名": "' + "🚀" * 500_000 + '"}'
    await store.add_tree_version(tree_version(tree=text))
    [found] = await store.tree_versions()
    digests = [hashlib.sha256(each.encode()).hexdigest() for each in (found.tree, text)]
    assert digests[0] == digests[1]


async def test_operations_are_kept_once_and_read_in_pages(store: SqlStore) -> None:
    rows = [
        operation_row(f"id{at}", created_at=NOW + at // 2, ended_at=NOW + at) for at in (1, 2, 3, 4)
    ]
    for each in rows:
        await store.keep_operation(each)
    resumed = operation_row("id2", created_at=NOW + 1, ended_at=NOW + 9, state="Succeeded")
    await store.keep_operation(resumed)
    newest = (rows[3], rows[2], resumed, rows[0])
    assert await store.operation_rows(10) == newest
    assert await store.operation_rows(2) == newest[:2]
    assert await store.kept_operation("id2") == resumed
    assert await store.kept_operation("id9") is None
    last = newest[1]
    assert await store.operation_rows(10, (last.created_at, last.id)) == newest[2:]
    long = operation_row("long", subject="dataset/" + "n" * 400, steps="x" * 200_000)
    await store.keep_operation(long)
    assert long in await store.operation_rows(10)
    assert await store.forget_operations(NOW + 4) == 2
    assert {each.id for each in await store.operation_rows(10)} == {"id4", "id2", "long"}


async def test_credentials_are_listed_and_revoked_once(store: SqlStore) -> None:
    first = credential("bob-1")
    second = credential("bob-2", issued_at=NOW + 1)
    others = credential("anna-1", user="anna", issued_at=NOW + 2)
    for each in (first, second, others):
        await store.add_credential(each)
    assert await store.credentials() == (others, second, first)
    assert await store.credentials("bob") == (second, first)
    assert await store.revoke_credentials(NOW + 5, name="bob-1") == 1
    assert await store.revoke_credentials(NOW + 9, user="bob") == 1
    assert await store.revoke_credentials(NOW + 10, user="bob") == 0
    assert [each.revoked_at for each in await store.credentials()] == [0, NOW + 9, NOW + 5]


async def test_an_owner_has_one_id_whichever_replica_asks_first(address: StoreAddress) -> None:
    one, other = await open_twice(address)
    long = "root." + "名" * 400
    try:
        for kind, name in ((OwnerKind.LEAF, long), (OwnerKind.USER, "bob")):
            asked: list[Awaitable[int]] = [
                each.owner_id(kind, name) for _ in range(5) for each in (one, other)
            ]
            assert len(set(await asyncio.gather(*asked))) == 1
        names = ("bob", "Bob", "bob ", "bób")
        ids = [await one.owner_id(OwnerKind.NAMESPACE, name) for name in names]
        assert len(set(ids)) == 4
        leaf = await other.owner_id(OwnerKind.LEAF, long)
        assert await one.owners(OwnerKind.LEAF) == (UsageOwner(OwnerKind.LEAF, long, leaf),)
    finally:
        await one.close()
        await other.close()


async def test_facts_name_the_engine_the_place_and_the_schema(
    engine: str, address: StoreAddress, store: SqlStore
) -> None:
    facts = await store.facts()
    expected = {"sqlite": "3.", "postgresql": "PostgreSQL 1", "mariadb": "1"}
    assert facts.engine == ("mysql" if engine == "mariadb" else engine)
    assert facts.engine_version.startswith(expected[engine])
    assert facts.schema == "0005" and len(facts.id) == 32
    assert facts.place == address.place
    again = SqlStore(address)
    assert (await again.facts()).id == facts.id
    await again.close()


async def test_two_new_stores_have_different_ids(new_address: Callable[[], StoreAddress]) -> None:
    stores = [await open_store(new_address()) for _ in range(2)]
    ids = {(await each.facts()).id for each in stores}
    assert len(ids) == 2
    for each in stores:
        await each.close()
