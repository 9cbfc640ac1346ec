"""The store (`ports.Store`) on SQLAlchemy Core: each method is one transaction in a thread.

No statement here changes or deletes a row of the audit, but for `forget_audit`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from fairlead.edge.store import engines
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.columns import KEY_LENGTH, NAME_LENGTH
from fairlead.edge.store.ledger.accounts import name_hash
from fairlead.edge.store.ledger.sql_ledger import SqlLedger
from fairlead.edge.store.migrate import store_facts
from fairlead.edge.store.operation_rows import (
    operation_row,
    operation_values,
    operations_before,
)
from fairlead.edge.store.tables import (
    audit,
    credentials,
    operations,
    owners,
    sign_ins,
    spent_keys,
    tree_versions,
)
from fairlead.edge.store.texts import cut_text, whole_text
from fairlead.errors import StoreDown
from fairlead.model.people.subject import SignInWay
from fairlead.model.records.audit import AuditFilter, AuditResult, AuditRow, AuditTarget
from fairlead.model.records.rows import (
    KEPT_TREE_VERSIONS,
    CredentialRecord,
    OperationRow,
    OwnerKind,
    StoreFacts,
    TreeVersion,
    UsageOwner,
)
from fairlead.model.records.sign_ins import SignIn

ROWS_AT_ONCE: Final = 500
DOWN_SECONDS: Final = 1.0
"""After a failed connection, calls fail at once for this time instead of waiting for their own."""
_MOST_TEXT: Final = 4096
_ESCAPE: Final = "!"
"""A backslash would be an escape of MySQL's string literals, too."""
T = TypeVar("T")


class SqlStore:
    """A store at an address, with the schema that it must have (`migrate`).

    Made by `open_store`.
    """

    def __init__(
        self,
        address: StoreAddress,
        seconds: float = engines.CALL_SECONDS,
        *,
        held: int | None = None,
    ) -> None:
        """`held`: a descriptor that is closed with the store."""
        self._address = address
        self._held = held
        self._engine = engines.make_engine(address, seconds)
        self._threads = ThreadPoolExecutor(engines.CONNECTIONS, thread_name_prefix="store")
        self._writer = asyncio.Semaphore(1 if address.engine == SQLITE else engines.CONNECTIONS)
        self._down: StoreDown | None = None
        self._down_until = 0.0
        self.ledger = SqlLedger(self._read, self._write)

    # sign-ins

    async def add_sign_in(self, sign_in: SignIn) -> None:
        values = {
            "hash": sign_in.hash,
            "identity": whole_text(sign_in.identity),
            "user_id": cut_text(sign_in.user, KEY_LENGTH),
            "way": str(sign_in.way),
            "began_at": sign_in.began_at,
            "seen_at": sign_in.seen_at,
            "ends_at": sign_in.ends_at,
            "csrf": sign_in.csrf,
            "group_names": msgspec.json.encode([*map(whole_text, sign_in.groups)]).decode(),
            "source_ip": cut_text(sign_in.source_ip, KEY_LENGTH),
            "bound_to": whole_text(sign_in.bound_to),
        }
        await self._write(lambda connection: connection.execute(insert(sign_ins).values(values)))

    async def sign_in(self, hash: str) -> SignIn | None:
        asked = select(sign_ins).where(sign_ins.c.hash == hash)
        row = await self._read(lambda connection: connection.execute(asked).one_or_none())
        return None if row is None else _sign_in(row)

    async def touch_sign_in(self, hash: str, seen_at: int) -> None:
        is_older = and_(sign_ins.c.hash == hash, sign_ins.c.seen_at < seen_at)
        statement = update(sign_ins).where(is_older).values(seen_at=seen_at)
        await self._write(lambda connection: connection.execute(statement))

    async def end_sign_in(self, hash: str) -> bool:
        return await self._changed(delete(sign_ins).where(sign_ins.c.hash == hash)) > 0

    async def end_sign_ins(self, *, user: str = "", identity: str = "") -> int:
        if bool(user) == bool(identity):
            raise ValueError("end_sign_ins needs a user or an identity")
        named = sign_ins.c.user_id == user if user else sign_ins.c.identity == identity
        return await self._changed(delete(sign_ins).where(named))

    async def expire_sign_ins(self, now: int, seen_before: int) -> int:
        is_over = or_(sign_ins.c.ends_at < now, sign_ins.c.seen_at < seen_before)

        def expire(connection: Connection) -> int:
            connection.execute(delete(spent_keys).where(spent_keys.c.ends_at < now))
            return connection.execute(delete(sign_ins).where(is_over)).rowcount

        return await self._write(expire)

    async def spend(self, hash: str, ends_at: int) -> bool:
        statement = insert(spent_keys).values(hash=hash, ends_at=ends_at)
        try:
            await self._write(lambda connection: connection.execute(statement))
        except IntegrityError:
            return False
        return True

    # audit

    async def append_audit(self, row: AuditRow) -> int:
        values = _audit_values(row)
        return await self._inserted(insert(audit).values(values))

    async def audit_page(
        self, filter: AuditFilter, size: int, before: int = 0
    ) -> tuple[AuditRow, ...]:
        asked = _audit_rows(filter).order_by(audit.c.id.desc()).limit(size)
        if before:
            asked = asked.where(audit.c.id < before)
        return tuple(map(_audit_row, await self._rows(asked)))

    async def count_audit(self, filter: AuditFilter) -> int:
        asked = select(func.count()).select_from(_audit_rows(filter).subquery())
        return await self._read(lambda connection: connection.scalar(asked) or 0)

    async def audit_rows(self, filter: AuditFilter) -> AsyncGenerator[AuditRow]:
        last = 0
        while True:
            asked = _audit_rows(filter).where(audit.c.id > last).order_by(audit.c.id)
            rows = await self._rows(asked.limit(ROWS_AT_ONCE))
            for each in rows:
                yield _audit_row(each)
            if len(rows) < ROWS_AT_ONCE:
                return
            last = rows[-1].id

    async def forget_audit(self, before: int) -> int:
        return await self._changed(delete(audit).where(audit.c.at < before))

    # versions of the tree

    async def add_tree_version(self, version: TreeVersion) -> int:
        values = {
            "at": version.at,
            "actor": cut_text(version.actor, NAME_LENGTH),
            "version": cut_text(version.version, KEY_LENGTH),
            "summary": cut_text(version.summary, _MOST_TEXT),
            "request_id": cut_text(version.request_id, KEY_LENGTH),
            "tree": whole_text(version.tree),
        }
        newest = select(tree_versions.c.id).order_by(tree_versions.c.id.desc())

        def add(connection: Connection) -> int:
            added = connection.execute(insert(tree_versions).values(values))
            kept = connection.scalars(newest.limit(KEPT_TREE_VERSIONS)).all()
            connection.execute(delete(tree_versions).where(tree_versions.c.id < kept[-1]))
            return _new_id(added)

        return await self._write(add)

    async def tree_versions(self) -> tuple[TreeVersion, ...]:
        asked = select(tree_versions).order_by(tree_versions.c.id.desc())
        return tuple(
            TreeVersion(
                row.at, row.actor, row.tree, row.version, row.summary, row.request_id, row.id
            )
            for row in await self._rows(asked)
        )

    # credentials

    async def add_credential(self, credential: CredentialRecord) -> None:
        values = {
            "name": credential.name,
            "user_id": cut_text(credential.user, KEY_LENGTH),
            "issued_at": credential.issued_at,
            "expires_at": credential.expires_at,
            "issued_by": cut_text(credential.issued_by, NAME_LENGTH),
            "note": cut_text(credential.note, _MOST_TEXT),
            "revoked_at": credential.revoked_at,
        }
        await self._write(lambda connection: connection.execute(insert(credentials).values(values)))

    async def credentials(self, user: str = "") -> tuple[CredentialRecord, ...]:
        asked = select(credentials).order_by(credentials.c.issued_at.desc(), credentials.c.name)
        if user:
            asked = asked.where(credentials.c.user_id == user)
        return tuple(
            CredentialRecord(
                row.name,
                row.user_id,
                row.issued_at,
                row.expires_at,
                row.issued_by,
                row.note,
                row.revoked_at,
            )
            for row in await self._rows(asked)
        )

    async def revoke_credentials(self, at: int, *, name: str = "", user: str = "") -> int:
        if bool(name) == bool(user):
            raise ValueError("revoke_credentials needs a name or a user")
        named = credentials.c.name == name if name else credentials.c.user_id == user
        is_valid = and_(named, credentials.c.revoked_at == 0)
        return await self._changed(update(credentials).where(is_valid).values(revoked_at=at))

    # operations

    async def keep_operation(self, row: OperationRow) -> None:
        values = operation_values(row)

        def keep(connection: Connection) -> None:
            connection.execute(delete(operations).where(operations.c.operation == row.id))
            connection.execute(insert(operations).values(values))

        await self._write(keep)

    async def operation_rows(
        self, size: int, before: tuple[int, str] | None = None
    ) -> tuple[OperationRow, ...]:
        asked = operations_before(before).limit(size)
        return tuple(map(operation_row, await self._rows(asked)))

    async def kept_operation(self, id: str) -> OperationRow | None:
        found = await self._rows(select(operations).where(operations.c.operation == id))
        return operation_row(found[0]) if found else None

    async def forget_operations(self, before: int) -> int:
        return await self._changed(delete(operations).where(operations.c.ended_at < before))

    # owners

    async def owner_id(self, kind: OwnerKind, name: str) -> int:
        found = await self._owner_id(kind, name)
        if found is not None:
            return found
        values = {"kind": str(kind), "name": whole_text(name), "name_hash": name_hash(name)}
        try:
            return await self._inserted(insert(owners).values(values))
        except IntegrityError:  # another replica was first
            found = await self._owner_id(kind, name)
            if found is None:
                raise
            return found

    async def _owner_id(self, kind: OwnerKind, name: str) -> int | None:
        is_named = and_(owners.c.kind == str(kind), owners.c.name_hash == name_hash(name))
        asked = select(owners.c.id).where(is_named)
        return await self._read(lambda connection: connection.scalar(asked))

    async def owners(self, kind: OwnerKind) -> tuple[UsageOwner, ...]:
        asked = select(owners).where(owners.c.kind == str(kind)).order_by(owners.c.id)
        return tuple(
            UsageOwner(OwnerKind(row.kind), row.name, row.id) for row in await self._rows(asked)
        )

    # the store itself

    async def facts(self) -> StoreFacts:
        return await self._read(lambda connection: store_facts(self._address, connection))

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)
        self._engine.dispose()
        if self._held is not None:
            os.close(self._held)
            self._held = None

    async def _rows(self, asked: Select[Any]) -> list[Row[Any]]:
        return await self._read(lambda connection: list(connection.execute(asked)))

    async def _changed(self, statement: Any) -> int:
        """How many rows the statement changed."""
        return await self._write(lambda connection: connection.execute(statement).rowcount)

    async def _inserted(self, statement: Any) -> int:
        """The id of the new row."""
        return await self._write(lambda connection: _new_id(connection.execute(statement)))

    async def _read(self, question: Callable[[Connection], T]) -> T:
        return await self._in_thread(question, is_write=False)

    async def _write(self, change: Callable[[Connection], T]) -> T:
        async with self._writer:
            return await self._in_thread(change, is_write=True)

    async def _in_thread(self, work: Callable[[Connection], T], *, is_write: bool) -> T:
        def call() -> T:
            if self._down is not None and time.monotonic() < self._down_until:
                raise StoreDown(self._down.what, self._down.hint)
            opened = engines.writing if is_write else engines.reading
            try:
                with engines.failures(self._address), opened(self._engine) as connection:
                    found = work(connection)
            except engines.NoConnection as error:
                self._down, self._down_until = error, time.monotonic() + DOWN_SECONDS
                raise
            self._down = None
            return found

        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


def _new_id(result: Any) -> int:
    return int(result.inserted_primary_key[0])


def _sign_in(row: Row[Any]) -> SignIn:
    return SignIn(
        row.hash,
        row.identity,
        row.user_id,
        SignInWay(row.way),
        row.began_at,
        row.seen_at,
        row.ends_at,
        row.csrf,
        tuple(msgspec.json.decode(row.group_names, type=list[str])),
        row.source_ip,
        row.bound_to or "",
    )


def _audit_values(row: AuditRow) -> dict[str, Any]:
    texts = {
        "actor": cut_text(row.actor, NAME_LENGTH),
        "role": cut_text(row.role, KEY_LENGTH),
        "source_ip": cut_text(row.source_ip, KEY_LENGTH),
        "action": cut_text(row.action, KEY_LENGTH),
        "target_kind": cut_text(row.target.kind, KEY_LENGTH),
        "target_namespace": cut_text(row.target.namespace, NAME_LENGTH),
        "target_name": cut_text(row.target.name, NAME_LENGTH),
        "request_id": cut_text(row.request_id, KEY_LENGTH),
        "result": str(row.result),
        "code": cut_text(row.code, KEY_LENGTH),
        "summary": cut_text(row.summary, _MOST_TEXT),
    }
    names = ("actor", "action", "target_name", "summary")
    searched = "\n".join(texts[name] for name in names).casefold()
    return {**texts, "at": row.at, "begun_id": row.begun_id, "searched": searched}


def _audit_row(row: Row[Any]) -> AuditRow:
    return AuditRow(
        row.at,
        row.actor,
        row.action,
        AuditResult(row.result),
        row.role,
        row.source_ip,
        AuditTarget(row.target_kind, row.target_namespace, row.target_name),
        row.request_id,
        row.code,
        row.summary,
        row.begun_id,
        row.id,
    )


def _audit_rows(filter: AuditFilter) -> Select[Any]:
    """Rows that match, without those `begun` that a second row ends."""
    second = audit.alias("second")
    has_second = select(second.c.id).where(second.c.begun_id == audit.c.id).exists()
    asked = select(audit).where(or_(audit.c.result != str(AuditResult.BEGUN), ~has_second))
    return asked.where(and_(True, *_conditions(filter)))


def _conditions(filter: AuditFilter) -> list[ColumnElement[bool]]:
    target = filter.target
    one_of = (
        (audit.c.actor, tuple(cut_text(each, NAME_LENGTH) for each in filter.actors)),
        (audit.c.action, filter.actions),
        (audit.c.result, tuple(map(str, filter.results))),
    )
    equal = (
        (audit.c.target_kind, target.kind),
        (audit.c.target_namespace, target.namespace),
        (audit.c.target_name, cut_text(target.name, NAME_LENGTH)),
        (audit.c.request_id, cut_text(filter.request_id, KEY_LENGTH)),
    )
    found: list[ColumnElement[bool]] = [column.in_(values) for column, values in one_of if values]
    found += [column == value for column, value in equal if value]
    if filter.since:
        found.append(audit.c.at >= filter.since)
    if filter.until:
        found.append(audit.c.at < filter.until)
    if filter.text:
        text = whole_text(filter.text).casefold()
        found.append(audit.c.searched.like(_pattern(text), escape=_ESCAPE))
    return found


def _pattern(text: str) -> str:
    """A pattern of LIKE for texts that contain this one.

    >>> _pattern("100%")
    '%100!%%'
    """
    for special in (_ESCAPE, "%", "_"):
        text = text.replace(special, _ESCAPE + special)
    return f"%{text}%"
