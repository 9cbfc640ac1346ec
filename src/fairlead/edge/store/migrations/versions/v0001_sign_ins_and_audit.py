"""Sign-ins, audit and owners."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, String, Text
from sqlalchemy.dialects.mysql import LONGTEXT

from fairlead.edge.store.migrations.steps import create_index, create_table

revision = "0001"
down_revision = None

_TEXT = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
_ID = BigInteger().with_variant(Integer(), "sqlite")
_OPTIONS: dict[str, Any] = {
    f"{engine}_{key}": value
    for engine in ("mysql", "mariadb")
    for key, value in (("engine", "InnoDB"), ("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))
}


def _text(name: str, length: int = 0, *, is_key: bool = False) -> Column[str]:
    return Column(name, String(length) if length else _TEXT, nullable=False, primary_key=is_key)


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _id() -> Column[int]:
    return Column("id", _ID, primary_key=True, autoincrement=True)


def upgrade() -> None:
    create_table("meta", _text("name", 191, is_key=True), _text("value"), **_OPTIONS)
    create_table(
        "sign_ins",
        _text("hash", 64, is_key=True),
        _text("identity"),
        _text("user_id", 191),
        _text("way", 191),
        _number("began_at"),
        _number("seen_at"),
        _number("ends_at"),
        _text("csrf", 191),
        _text("group_names"),
        _text("source_ip", 191),
        **_OPTIONS,
    )
    create_index("sign_ins_user", "sign_ins", ["user_id"])
    create_table("spent_keys", _text("hash", 64, is_key=True), _number("ends_at"), **_OPTIONS)
    create_table(
        "audit",
        _id(),
        _number("at"),
        _text("actor", 255),
        _text("role", 191),
        _text("source_ip", 191),
        _text("action", 191),
        _text("target_kind", 191),
        _text("target_namespace", 255),
        _text("target_name", 255),
        _text("request_id", 191),
        _text("result", 191),
        _text("code", 191),
        _text("summary"),
        _number("begun_id"),
        _text("searched"),
        sqlite_autoincrement=True,
        **_OPTIONS,
    )
    create_index("audit_at", "audit", ["at"])
    create_index("audit_request", "audit", ["request_id"])
    create_index("audit_begun", "audit", ["begun_id"])
    create_table(
        "owners", _id(), _text("kind", 191), _text("name"), _text("name_hash", 64), **_OPTIONS
    )
    create_index("owners_name", "owners", ["kind", "name_hash"], is_unique=True)
