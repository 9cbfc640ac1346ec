"""Export and import: a store comes to another engine whole, or not at all."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import Connection
from tests.stores.rows import (
    HOUR,
    NOW,
    audit_row,
    credential,
    ledger_batch,
    operation_row,
    price,
    sign_in,
    tree_version,
)

from fairlead.edge.store import administration
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.administration import SqlAdministration
from fairlead.edge.store.migrate import migrate
from fairlead.edge.store.opened import open_store
from fairlead.edge.store.tables import VERSIONS
from fairlead.errors import UserError
from fairlead.model.records.audit import AuditFilter
from fairlead.model.records.rows import OwnerKind

ONLY_SQLITE = pytest.mark.parametrize("engine", ["sqlite"])
ROWS = {
    "audit": 3,
    "credentials": 1,
    "kept_states": 1,
    "ledger_claim": 1,
    "ledger_gaps": 1,
    "ledger_jobs": 1,
    "node_days": 1,
    "node_hours": 1,
    "node_intervals": 1,
    "operations": 1,
    "owners": 5,
    "pod_hours": 1,
    "pod_intervals": 2,
    "price_classes": 1,
    "prices": 1,
    "sign_ins": 2,
    "spent_keys": 1,
    "tree_versions": 1,
    "usage_accounts": 2,
    "usage_days": 2,
}
TOTAL = sum(ROWS.values())


async def filled(address: StoreAddress) -> bytes:
    """A store with rows in every table, and its export."""
    store = await open_store(address)
    for number in (1, 2):
        await store.add_sign_in(sign_in(number))
    await store.spend("a" * 64, NOW)
    for summary in ("one", "Übung 🚀\n", "x" * 5000):
        await store.append_audit(audit_row(summary=summary))
    await store.add_tree_version(tree_version())
    await store.add_credential(credential())
    await store.keep_operation(operation_row())
    for name in ("root." + "名" * 400, "root.b"):
        await store.owner_id(OwnerKind.LEAF, name)
    claim = await store.ledger.claim_ledger("one", NOW)
    await store.ledger.write_ledger(claim.epoch, ledger_batch())
    claim = await store.ledger.claim_ledger("two", NOW + 2 * HOUR)
    await store.ledger.fold_day(claim.epoch, NOW - HOUR, NOW + HOUR)
    await store.ledger.add_price(price())
    await store.close()
    return b"".join(SqlAdministration(address).export())


async def test_a_store_goes_through_an_engine_and_comes_back_byte_for_byte(
    new_address: Callable[[], StoreAddress], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(administration, "ROWS_AT_ONCE", 2)
    places = itertools.count()

    def sqlite_address() -> StoreAddress:
        return StoreAddress(SQLITE, file=str(tmp_path / f"sqlite-{next(places)}"))

    lines = await filled(sqlite_address())
    middle, last = SqlAdministration(new_address()), SqlAdministration(sqlite_address())
    assert middle.import_lines(lines) == TOTAL
    assert middle.check().rows == ROWS
    assert b"".join(middle.export()) == lines
    last.import_lines(b"".join(middle.export()))
    assert b"".join(last.export()) == lines


async def test_after_an_import_new_rows_get_new_ids(
    new_address: Callable[[], StoreAddress],
) -> None:
    lines = await filled(new_address())
    address = new_address()
    SqlAdministration(address).import_lines(lines)
    store = await open_store(address)
    stored = [row.id async for row in store.audit_rows(AuditFilter())]
    assert await store.append_audit(audit_row()) > max(stored)
    [version] = await store.tree_versions()
    assert await store.add_tree_version(tree_version()) > version.id
    known = {owner.id for owner in await store.owners(OwnerKind.LEAF)}
    assert await store.owner_id(OwnerKind.USER, "bob") not in known
    assert await store.owner_id(OwnerKind.LEAF, "root.b") in known
    await store.close()


async def test_a_store_with_rows_is_refused_and_stays_as_it_was(
    new_address: Callable[[], StoreAddress],
) -> None:
    address = new_address()
    lines = await filled(address)
    with pytest.raises(UserError) as caught:
        SqlAdministration(address).import_lines(lines)
    assert caught.value.what == (f"the store `{address.place}` has rows already, in `audit`")
    assert b"".join(SqlAdministration(address).export()) == lines


def changed(lines: bytes, number: int, old: bytes, new: bytes) -> bytes:
    parts = lines.splitlines(keepends=True)
    assert old in parts[number]
    parts[number] = parts[number].replace(old, new, 1)
    return b"".join(parts)


BAD_FILES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda lines: b"", "the file is empty"),
    "its end is missing": (
        lambda lines: b"".join(lines.splitlines(keepends=True)[:-1]),
        "the file has no last line with the number of rows",
    ),
    "it was cut in a line": (
        lambda lines: lines[:-60],
        "the file has no last line with the number of rows",
    ),
    "something else": (
        lambda lines: b"kind: User\n",
        "line 1 is not one of an export: JSON is malformed: invalid character (byte 0)",
    ),
    "a line is missing": (
        lambda lines: b"".join(each for at, each in enumerate(lines.splitlines(True)) if at != 3),
        f"the file has {TOTAL - 1} rows and lists {TOTAL}",
    ),
    "another schema": (
        lambda lines: changed(lines, 0, b'"schema":"0005"', b'"schema":"0001"'),
        "the file has a store of schema `0001`, format 1; this Fairlead imports schema "
        "`0005`, format 1",
    ),
    "another table": (
        lambda lines: changed(lines, 1, b'"table":"audit"', b'"table":"users"'),
        "line 2 has the unknown table `users`",
    ),
    "the table of the store itself": (
        lambda lines: changed(lines, 1, b'"table":"audit"', b'"table":"meta"'),
        "line 2 has the unknown table `meta`",
    ),
    "another column": (
        lambda lines: changed(lines, 1, b'"actor":', b'"Actor":'),
        "line 2 has other columns than `audit`: `Actor`",
    ),
    "text for a number": (
        lambda lines: changed(lines, 1, b'"at":1790000000000', b'"at":"now"'),
        "line 2: `at` is no whole number of 64 bits",
    ),
    "a number for text": (
        lambda lines: changed(lines, 1, b'"actor":"anna"', b'"actor":7'),
        "line 2: `actor` is no text",
    ),
    "a number that is too large": (
        lambda lines: changed(lines, 1, b'"at":1790000000000', b'"at":9223372036854775808'),
        "line 2: `at` is no whole number of 64 bits",
    ),
    "a long key": (
        lambda lines: changed(lines, 1, b'"role":"admin"', b'"role":"' + b"r" * 192 + b'"'),
        "line 2: `role` has more than 191 characters",
    ),
    "a key twice": (
        lambda lines: changed(lines, 3, b'"id":3', b'"id":2'),
        "two rows of `audit` have the same key",
    ),
}


async def test_a_damaged_file_is_refused_with_its_line_and_nothing_is_stored(
    new_address: Callable[[], StoreAddress],
) -> None:
    lines = await filled(new_address())
    assert lines.splitlines()[-1] == b'{"rows":%d}' % TOTAL
    target = SqlAdministration(new_address())
    for what, (damage, expected) in BAD_FILES.items():
        with pytest.raises(UserError) as caught:
            target.import_lines(damage(lines))
        assert caught.value.what == expected, what
        assert caught.value.hint
        assert set(target.check().rows.values()) == {0}, what
    assert target.import_lines(lines) == TOTAL


async def test_an_export_is_of_one_moment(
    new_address: Callable[[], StoreAddress], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(administration, "ROWS_AT_ONCE", 1)
    address = new_address()
    await filled(address)
    lines = SqlAdministration(address).export()
    seen = [next(lines), next(lines)]  # a row of the audit, the first table
    store = await open_store(address)
    await store.append_audit(audit_row())
    await store.end_sign_ins(user="bob")
    await store.close()
    seen += lines
    assert msgspec.json.decode(seen[-1]) == {"rows": TOTAL}
    assert len(seen) == TOTAL + 2


async def test_rows_of_an_older_schema_are_not_exported(
    new_address: Callable[[], StoreAddress],
) -> None:
    address = new_address()
    migrate(address, target=VERSIONS[0])
    with pytest.raises(UserError) as caught:
        list(SqlAdministration(address).export())
    assert caught.value.what == f"the store `{address.place}` has schema `0001`, not `0005`"
    with pytest.raises(UserError):
        SqlAdministration(address).check()


@ONLY_SQLITE
async def test_no_other_process_writes_between_the_look_and_the_rows(
    engine: str, new_address: Callable[[], StoreAddress], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, address = await filled(new_address()), new_address()
    migrate(address)
    refused: list[str] = []
    count_rows = administration.row_counts

    def write_beside(connection: Connection) -> dict[str, int]:
        found = count_rows(connection)
        with closing(sqlite3.connect(address.file, timeout=0)) as other:
            try:
                other.execute("INSERT INTO spent_keys VALUES ('b', 1)")
                other.commit()
            except sqlite3.OperationalError as error:
                refused.append(str(error))
        return found

    monkeypatch.setattr(administration, "row_counts", write_beside)
    assert SqlAdministration(address).import_lines(lines) == TOTAL
    assert refused == ["database is locked"]


@ONLY_SQLITE
def test_a_check_creates_no_file(engine: str, address: StoreAddress) -> None:
    with pytest.raises(UserError) as caught:
        SqlAdministration(address).check()
    assert caught.value.what == (
        f"the store `{address.file}` cannot be opened: No such file or directory"
    )
    assert not Path(address.file).exists()
