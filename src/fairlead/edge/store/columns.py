"""What tables of the store are made of, alike in all engines: times are BIGINT milliseconds, JSON
is text, keys have at most 191 characters (MySQL's limit for an index of four-byte characters).
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Text
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

metadata = MetaData()


def key(name: str, **options: Any) -> Column[str]:
    return Column(name, String(KEY_LENGTH), nullable=False, **options)


def hash_text(name: str, **options: Any) -> Column[str]:
    return Column(name, String(HASH_LENGTH), nullable=False, **options)


def name_text(name: str) -> Column[str]:
    return Column(name, String(NAME_LENGTH), nullable=False)


def long_text(name: str) -> Column[str]:
    return Column(name, LONG_TEXT, nullable=False)


def number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def row_id() -> Column[int]:
    return Column("id", ROW_ID, primary_key=True, autoincrement=True)
