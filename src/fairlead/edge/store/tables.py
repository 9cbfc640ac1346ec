"""The tables, one schema for all engines: times are BIGINT milliseconds, JSON is text, keys have
at most 191 characters (MySQL's limit for an index of four-byte characters).

The newest version of the schema; `migrations` has how a store comes to it.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, String, Table, Text
from sqlalchemy.dialects.mysql import LONGTEXT

KEY_LENGTH: Final = 191
NAME_LENGTH: Final = 255
HASH_LENGTH: Final = 64
LONG_TEXT: Final = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
"""MySQL's TEXT ends at 64 KiB."""
ROW_ID: Final = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite numbers rows only if their type is INTEGER."""
MYSQL_OPTIONS: Final[dict[str, Any]] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_engine": "InnoDB",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}
"""`utf8mb4_bin`: texts that differ in case only are different, as in the other engines."""

VERSIONS: Final = ("0001", "0002", "0003", "0004")
"""Of the schema, oldest first: those of the files in `migrations/versions`, without Alembic, which
takes a third of a second to load.
"""
VERSION_TABLE: Final = "schema_version"
META_ID: Final = "id"
"""A name in `meta`: the id of the store."""
META_MIGRATING: Final = "migrating"
"""A name in `meta`, while a migration is under way: the version from which. Its copy of the file
exists.
"""

metadata = MetaData()


def _key(name: str, **options: Any) -> Column[str]:
    return Column(name, String(KEY_LENGTH), nullable=False, **options)


def _hash(name: str, **options: Any) -> Column[str]:
    return Column(name, String(HASH_LENGTH), nullable=False, **options)


def _name(name: str) -> Column[str]:
    return Column(name, String(NAME_LENGTH), nullable=False)


def _text(name: str) -> Column[str]:
    return Column(name, LONG_TEXT, nullable=False)


def _millis(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _id() -> Column[int]:
    return Column("id", ROW_ID, primary_key=True, autoincrement=True)


meta = Table("meta", metadata, _key("name", primary_key=True), _text("value"), **MYSQL_OPTIONS)

sign_ins = Table(
    "sign_ins",
    metadata,
    _hash("hash", primary_key=True),
    _text("identity"),
    _key("user_id"),
    _key("way"),
    _millis("began_at"),
    _millis("seen_at"),
    _millis("ends_at"),
    _key("csrf"),
    _text("group_names"),
    _key("source_ip"),
    Column("bound_to", LONG_TEXT, nullable=True),
    Index("sign_ins_user", "user_id"),
    **MYSQL_OPTIONS,
)

spent_keys = Table(
    "spent_keys", metadata, _hash("hash", primary_key=True), _millis("ends_at"), **MYSQL_OPTIONS
)

audit = Table(
    "audit",
    metadata,
    _id(),
    _millis("at"),
    _name("actor"),
    _key("role"),
    _key("source_ip"),
    _key("action"),
    _key("target_kind"),
    _name("target_namespace"),
    _name("target_name"),
    _key("request_id"),
    _key("result"),
    _key("code"),
    _text("summary"),
    Column("begun_id", BigInteger, nullable=False),
    _text("searched"),
    Index("audit_at", "at"),
    Index("audit_request", "request_id"),
    Index("audit_begun", "begun_id"),
    sqlite_autoincrement=True,
    **MYSQL_OPTIONS,
)

owners = Table(
    "owners",
    metadata,
    _id(),
    _key("kind"),
    _text("name"),
    _hash("name_hash"),
    Index("owners_name", "kind", "name_hash", unique=True),
    **MYSQL_OPTIONS,
)

credentials = Table(
    "credentials",
    metadata,
    _key("name", primary_key=True),
    _key("user_id"),
    _millis("issued_at"),
    _millis("expires_at"),
    _name("issued_by"),
    _text("note"),
    _millis("revoked_at"),
    Index("credentials_user", "user_id"),
    **MYSQL_OPTIONS,
)

tree_versions = Table(
    "tree_versions",
    metadata,
    _id(),
    _millis("at"),
    _name("actor"),
    _key("version"),
    _text("summary"),
    _key("request_id"),
    _text("tree"),
    sqlite_autoincrement=True,
    **MYSQL_OPTIONS,
)

operations = Table(
    "operations",
    metadata,
    _key("operation", primary_key=True),
    _key("kind"),
    _text("subject"),
    _key("state"),
    _name("created_by"),
    _millis("created_at"),
    _millis("ended_at"),
    _text("message"),
    _text("steps"),
    Index("operations_created", "created_at"),
    **MYSQL_OPTIONS,
)
