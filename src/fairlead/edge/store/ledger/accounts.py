"""Accounts: owner, job and price class together, as rows with ids. They never change."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, Select, Table, and_, delete, exists, select

from fairlead.edge.store.columns import KEY_LENGTH, NAME_LENGTH
from fairlead.edge.store.ledger.bulk import Rows, matching, upsert
from fairlead.edge.store.ledger_tables import (
    pod_intervals,
    price_classes,
    usage_accounts,
    usage_days,
)
from fairlead.edge.store.tables import owners
from fairlead.edge.store.texts import cut_text, whole_text
from fairlead.model.records.rows import OwnerKind
from fairlead.model.usage.ledger import LedgerJob, PriceClass, UsedBy

IDS_AT_ONCE: Final = 500
NO_OWNER: Final = 0
"""The id of the owner ""."""
_MOST_KNOWN: Final = 200_000
_ACCOUNT_COLUMNS: Final = (
    *("id", "class_id", "namespace_id", "user_id", "leaf_id", "job_uid", "job", "job_type"),
)
Owner = tuple[OwnerKind, str]


class UsageAccount(NamedTuple):
    by: UsedBy
    job: LedgerJob
    price_class: PriceClass


class Ids:
    """What a transaction has found and stored; `AccountIds` takes it over when it is committed."""

    def __init__(self, known: AccountIds) -> None:
        self._known = known
        self.owners: dict[Owner, int] = {}
        self.classes: dict[PriceClass, int] = {}
        self.accounts: dict[UsageAccount, int] = {}

    def owner(self, kind: OwnerKind, name: str) -> int:
        if not name:
            return NO_OWNER
        each = kind, name
        return self._known.owners.get(each) or self.owners[each]

    def price_class(self, each: PriceClass) -> int:
        return self._known.classes.get(each) or self.classes[each]

    def account(self, each: UsageAccount) -> int:
        return self._known.accounts.get(each) or self.accounts[each]


class AccountIds:
    """Ids that the writer of a ledger knows already."""

    def __init__(self) -> None:
        self.owners: dict[Owner, int] = {}
        self.classes: dict[PriceClass, int] = {}
        self.accounts: dict[UsageAccount, int] = {}

    def forget(self) -> None:
        for known in (self.owners, self.classes, self.accounts):
            known.clear()

    def keep(self, found: Ids) -> None:
        """After the commit."""
        if len(self.accounts) + len(self.owners) > _MOST_KNOWN:
            self.forget()
        self.owners |= found.owners
        self.classes |= found.classes
        self.accounts |= found.accounts

    def find(
        self,
        connection: Connection,
        accounts: Iterable[UsageAccount],
        classes: Iterable[PriceClass],
        used_by: Iterable[UsedBy],
    ) -> Ids:
        """Ids of all of them; those that are new are stored."""
        found = Ids(self)
        engine = connection.dialect.name
        new = {each for each in accounts if each not in self.accounts}
        new_classes = {each.price_class for each in new} | {*classes}
        new_classes = {each for each in new_classes if each not in self.classes}
        asked = {owner for each in new for owner in _owners(each.by)}
        asked |= {owner for each in used_by for owner in _owners(each)}
        new_owners = {each for each in asked if each not in self.owners}
        found.owners = _stored(connection, owners, _owner_rows(new_owners), "name_hash", engine)
        found.classes = _stored(connection, price_classes, _class_rows(new_classes), "hash", engine)
        rows = _account_rows(new, found)
        found.accounts = _stored(connection, usage_accounts, rows, "hash", engine)
        return found


def _owners(by: UsedBy) -> list[Owner]:
    found = [
        (OwnerKind.NAMESPACE, by.namespace),
        (OwnerKind.USER, by.user),
        (OwnerKind.LEAF, by.leaf),
    ]
    return [each for each in found if each[1]]


NewRows = dict[Any, dict[str, Any]]
"""Rows to store, by what they stand for."""


def _owner_rows(new: Iterable[Owner]) -> NewRows:
    return {
        (kind, name): {
            "kind": str(kind),
            "name": whole_text(name),
            "name_hash": name_hash(name),
        }
        for kind, name in new
    }


def _class_rows(new: Iterable[PriceClass]) -> NewRows:
    return {
        each: {
            "hash": _class_hash(each),
            "labels": _labels(each),
            "model": cut_text(each.model, NAME_LENGTH),
            "gpu": each.gpu,
            "cpu_milli": each.cpu_milli,
            "memory_mib": each.memory_mib,
        }
        for each in new
    }


def _labels(each: PriceClass) -> str:
    whole = [[whole_text(key), whole_text(value)] for key, value in each.labels]
    return msgspec.json.encode(whole).decode()


def _account_rows(new: Iterable[UsageAccount], ids: Ids) -> NewRows:
    return {
        each: {
            "hash": _account_hash(each),
            "namespace_id": ids.owner(OwnerKind.NAMESPACE, each.by.namespace),
            "user_id": ids.owner(OwnerKind.USER, each.by.user),
            "leaf_id": ids.owner(OwnerKind.LEAF, each.by.leaf),
            "job_uid": cut_text(each.job.uid, KEY_LENGTH),
            "job": cut_text(each.job.name, NAME_LENGTH),
            "job_type": cut_text(each.job.type, KEY_LENGTH),
            "class_id": ids.price_class(each.price_class),
        }
        for each in new
    }


def name_hash(name: str) -> str:
    return hashlib.sha256(whole_text(name).encode()).hexdigest()


def _hash(*parts: str | int) -> str:
    whole = msgspec.json.encode([whole_text(str(each)) for each in parts])
    return hashlib.sha256(whole).hexdigest()


def _class_hash(each: PriceClass) -> str:
    labels = (text for label in each.labels for text in label)
    return _hash(each.model, each.gpu, each.cpu_milli, each.memory_mib, *labels)


def _account_hash(each: UsageAccount) -> str:
    by, job = each.by, each.job
    owner = (by.namespace, by.user, by.leaf)
    return _hash(*owner, job.uid, job.name, job.type, _class_hash(each.price_class))


def _stored(
    connection: Connection, table: Table, new: NewRows, hash: str, engine: str
) -> dict[Any, int]:
    """The ids of all rows; those that are there already stay as they are."""
    if not new:
        return {}
    columns = next(iter(new.values())).keys()
    key = ["kind", hash] if "kind" in columns else [hash]
    rows = Rows(engine, [table.c[name] for name in columns])
    statement = upsert(table, rows, key, kept=[*columns])
    by_key = {tuple(values[each] for each in key): values for values in new.values()}
    found = _ids(connection, table, key, [*by_key])
    missing = [(*values.values(),) for each, values in by_key.items() if each not in found]
    if missing:
        rows.run(connection, statement, missing)
        found |= _ids(connection, table, key, [each for each in by_key if each not in found])
    return {each: found[tuple(values[part] for part in key)] for each, values in new.items()}


def _ids(
    connection: Connection, table: Table, key: list[str], wanted: list[tuple[Any, ...]]
) -> dict[tuple[Any, ...], int]:
    columns = ", ".join(f"t.{each}" for each in key)
    kinds = ", ".join(f"'{kind}'" for kind in OwnerKind)  # the index of owners begins with it
    more = f" AND t.kind IN ({kinds})" if "kind" in key else ""
    rows = matching(
        connection,
        table.c[key[-1]],
        (each[-1] for each in wanted),
        lambda listed, hash: (
            f"SELECT t.id, {columns} FROM {listed} "
            f"JOIN {table.name} t ON t.{key[-1]} = {hash}{more}"
        ),
    )
    return {tuple(values): id for id, *values in rows}


def accounts_by_id(connection: Connection, ids: Collection[int]) -> dict[int, UsageAccount]:
    """The accounts of these ids."""
    classes = classes_by_id(connection)
    rows = _rows_of(connection, usage_accounts, _ACCOUNT_COLUMNS, ids)
    names = owner_names(connection, {owner for row in rows for owner in row[2:5]})
    return {
        id: UsageAccount(
            UsedBy(names[namespace], names[user], names[leaf]), LedgerJob(*job), classes[class_id]
        )
        for id, class_id, namespace, user, leaf, *job in rows
    }


def class_ids(connection: Connection, ids: Collection[int]) -> dict[int, int]:
    """The ids of price classes, by those of accounts."""
    return dict(map(tuple, _rows_of(connection, usage_accounts, ("id", "class_id"), ids)))


def owner_names(connection: Connection, ids: Collection[int]) -> dict[int, str]:
    found = dict(map(tuple, _rows_of(connection, owners, ("id", "name"), ids)))
    return found | {NO_OWNER: ""}


def classes_by_id(connection: Connection) -> dict[int, PriceClass]:
    """All of them: there are few."""
    labels = msgspec.json.Decoder(tuple[tuple[str, str], ...])
    return {
        row.id: PriceClass(
            labels.decode(row.labels), row.model, row.gpu, row.cpu_milli, row.memory_mib
        )
        for row in connection.execute(select(price_classes))
    }


def _rows_of(
    connection: Connection, table: Table, columns: Sequence[str], ids: Collection[int]
) -> list[Any]:
    names = ", ".join(f"t.{name}" for name in columns)
    return matching(
        connection,
        table.c.id,
        sorted(ids),
        lambda listed, id: f"SELECT {names} FROM {listed} JOIN {table.name} t ON t.id = {id}",
    )


def namespace_ids(namespaces: Collection[str]) -> Select[Any]:
    """The ids of namespaces, as a part of another question."""
    hashes = [name_hash(each) for each in namespaces]
    is_namespace = owners.c.kind == str(OwnerKind.NAMESPACE)
    return select(owners.c.id).where(is_namespace, owners.c.name_hash.in_(hashes))


def accounts_of(namespaces: Collection[str] | None, job_uid: str = "") -> Select[Any] | None:
    """The ids of accounts of these namespaces, and of the job; None: of all."""
    asked = select(usage_accounts.c.id)
    if job_uid:
        asked = asked.where(usage_accounts.c.job_uid == cut_text(job_uid, KEY_LENGTH))
    if namespaces is not None:
        asked = asked.where(usage_accounts.c.namespace_id.in_(namespace_ids(namespaces)))
    return asked if job_uid or namespaces is not None else None


def remove_unused(connection: Connection, after: int, size: int) -> int:
    """Of `size` accounts with greater ids than `after` remove those that nothing refers to. The
    last id that was looked at, 0 at the end.
    """
    accounts = usage_accounts.c
    asked = select(accounts.id).where(accounts.id > after).order_by(accounts.id).limit(size)
    ids = connection.scalars(asked).all()
    if not ids:
        return 0
    tables = (pod_intervals, usage_days)
    is_used = [exists().where(table.c.account_id == accounts.id) for table in tables]
    is_asked = and_(accounts.id > after, accounts.id <= ids[-1])
    unused = select(accounts.id).where(is_asked, *(~each for each in is_used))
    found = connection.scalars(unused).all()
    for at in range(0, len(found), IDS_AT_ONCE):
        part = found[at : at + IDS_AT_ONCE]
        connection.execute(delete(usage_accounts).where(accounts.id.in_(part)))
    return int(ids[-1])
