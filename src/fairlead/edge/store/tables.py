"""The tables: the newest version of the schema. `migrations` has how a store comes to it."""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, Index, Table

from fairlead.edge.store import ledger_tables
from fairlead.edge.store.columns import (
    LONG_TEXT,
    MYSQL_OPTIONS,
    hash_text,
    key,
    long_text,
    name_text,
    number,
    row_id,
)

VERSIONS: Final = ("0001", "0002", "0003", "0004", "0005")
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

metadata = ledger_tables.ledger_claim.metadata
"""Of all tables, those of the ledger included."""

meta = Table("meta", metadata, key("name", primary_key=True), long_text("value"), **MYSQL_OPTIONS)

sign_ins = Table(
    "sign_ins",
    metadata,
    hash_text("hash", primary_key=True),
    long_text("identity"),
    key("user_id"),
    key("way"),
    number("began_at"),
    number("seen_at"),
    number("ends_at"),
    key("csrf"),
    long_text("group_names"),
    key("source_ip"),
    Column("bound_to", LONG_TEXT, nullable=True),
    Index("sign_ins_user", "user_id"),
    **MYSQL_OPTIONS,
)

spent_keys = Table(
    "spent_keys", metadata, hash_text("hash", primary_key=True), number("ends_at"), **MYSQL_OPTIONS
)

audit = Table(
    "audit",
    metadata,
    row_id(),
    number("at"),
    name_text("actor"),
    key("role"),
    key("source_ip"),
    key("action"),
    key("target_kind"),
    name_text("target_namespace"),
    name_text("target_name"),
    key("request_id"),
    key("result"),
    key("code"),
    long_text("summary"),
    Column("begun_id", BigInteger, nullable=False),
    long_text("searched"),
    Index("audit_at", "at"),
    Index("audit_request", "request_id"),
    Index("audit_begun", "begun_id"),
    sqlite_autoincrement=True,
    **MYSQL_OPTIONS,
)

owners = Table(
    "owners",
    metadata,
    row_id(),
    key("kind"),
    long_text("name"),
    hash_text("name_hash"),
    Index("owners_name", "kind", "name_hash", unique=True),
    **MYSQL_OPTIONS,
)

credentials = Table(
    "credentials",
    metadata,
    key("name", primary_key=True),
    key("user_id"),
    number("issued_at"),
    number("expires_at"),
    name_text("issued_by"),
    long_text("note"),
    number("revoked_at"),
    Index("credentials_user", "user_id"),
    **MYSQL_OPTIONS,
)

tree_versions = Table(
    "tree_versions",
    metadata,
    row_id(),
    number("at"),
    name_text("actor"),
    key("version"),
    long_text("summary"),
    key("request_id"),
    long_text("tree"),
    sqlite_autoincrement=True,
    **MYSQL_OPTIONS,
)

operations = Table(
    "operations",
    metadata,
    key("operation", primary_key=True),
    key("kind"),
    long_text("subject"),
    key("state"),
    name_text("created_by"),
    number("created_at"),
    number("ended_at"),
    long_text("message"),
    long_text("steps"),
    Index("operations_created", "created_at"),
    **MYSQL_OPTIONS,
)
