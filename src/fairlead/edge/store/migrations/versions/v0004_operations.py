"""Operations that have ended."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, String, Text
from sqlalchemy.dialects.mysql import LONGTEXT

from fairlead.edge.store.migrations.steps import create_index, create_table

revision = "0004"
down_revision = "0003"

_TEXT = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
_OPTIONS: dict[str, Any] = {
    f"{engine}_{key}": value
    for engine in ("mysql", "mariadb")
    for key, value in (("engine", "InnoDB"), ("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))
}


def upgrade() -> None:
    create_table(
        "operations",
        Column("operation", String(191), primary_key=True, nullable=False),
        Column("kind", String(191), nullable=False),
        Column("subject", _TEXT, nullable=False),
        Column("state", String(191), nullable=False),
        Column("created_by", String(255), nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("ended_at", BigInteger, nullable=False),
        Column("message", _TEXT, nullable=False),
        Column("steps", _TEXT, nullable=False),
        **_OPTIONS,
    )
    create_index("operations_created", "operations", ["created_at"])
