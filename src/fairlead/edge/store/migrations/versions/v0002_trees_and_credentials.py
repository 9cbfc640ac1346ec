"""Versions of the quota tree, and the credentials that were issued."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, String, Text
from sqlalchemy.dialects.mysql import LONGTEXT

from fairlead.edge.store.migrations.steps import create_index, create_table

revision = "0002"
down_revision = "0001"

_TEXT = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
_ID = BigInteger().with_variant(Integer(), "sqlite")
_OPTIONS: dict[str, Any] = {
    f"{engine}_{key}": value
    for engine in ("mysql", "mariadb")
    for key, value in (("engine", "InnoDB"), ("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))
}


def upgrade() -> None:
    create_table(
        "credentials",
        Column("name", String(191), primary_key=True, nullable=False),
        Column("user_id", String(191), nullable=False),
        Column("issued_at", BigInteger, nullable=False),
        Column("expires_at", BigInteger, nullable=False),
        Column("issued_by", String(255), nullable=False),
        Column("note", _TEXT, nullable=False),
        Column("revoked_at", BigInteger, nullable=False),
        **_OPTIONS,
    )
    create_index("credentials_user", "credentials", ["user_id"])
    create_table(
        "tree_versions",
        Column("id", _ID, primary_key=True, autoincrement=True),
        Column("at", BigInteger, nullable=False),
        Column("actor", String(255), nullable=False),
        Column("version", String(191), nullable=False),
        Column("summary", _TEXT, nullable=False),
        Column("request_id", String(191), nullable=False),
        Column("tree", _TEXT, nullable=False),
        sqlite_autoincrement=True,
        **_OPTIONS,
    )
