"""The usage ledger."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, PrimaryKeyConstraint, String, Text
from sqlalchemy.dialects.mysql import LONGTEXT

from fairlead.edge.store.migrations.steps import create_index, create_table

revision = "0005"
down_revision = "0004"

_TEXT = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
_ID = BigInteger().with_variant(Integer(), "sqlite")
_OPTIONS: dict[str, Any] = {
    f"{engine}_{key}": value
    for engine in ("mysql", "mariadb")
    for key, value in (("engine", "InnoDB"), ("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))
}


def _numbers(*names: str) -> list[Column[Any]]:
    return [Column(name, BigInteger, nullable=False) for name in names]


def _texts(*names: str) -> list[Column[Any]]:
    return [Column(name, _TEXT, nullable=False) for name in names]


def _strings(length: int, *names: str) -> list[Column[Any]]:
    return [Column(name, String(length), nullable=False) for name in names]


def _id() -> Column[Any]:
    return Column("id", _ID, primary_key=True, autoincrement=True)


def upgrade() -> None:
    _create_claim()
    _create_accounts()
    _create_intervals()
    _create_hours()
    _create_states()
    _create_days()
    _create_prices()


def _create_claim() -> None:
    create_table(
        "ledger_claim",
        Column("id", BigInteger, primary_key=True, nullable=False, autoincrement=False),
        *_numbers("epoch"),
        *_strings(255, "holder"),
        *_numbers("claimed_at", "first_at", "heartbeat", "folded_until"),
        *_strings(191, "zone"),
        **_OPTIONS,
    )
    create_table(
        "ledger_gaps",
        Column("started_at", BigInteger, primary_key=True, nullable=False, autoincrement=False),
        *_numbers("ended_at"),
        **_OPTIONS,
    )


def _create_accounts() -> None:
    create_table(
        "price_classes",
        _id(),
        *_strings(64, "hash"),
        *_texts("labels"),
        *_strings(255, "model"),
        *_numbers("gpu", "cpu_milli", "memory_mib"),
        sqlite_autoincrement=True,
        **_OPTIONS,
    )
    create_index("price_classes_hash", "price_classes", ["hash"], is_unique=True)
    create_table(
        "usage_accounts",
        _id(),
        *_strings(64, "hash"),
        *_numbers("namespace_id", "user_id", "leaf_id"),
        *_strings(191, "job_uid"),
        *_strings(255, "job"),
        *_strings(191, "job_type"),
        *_numbers("class_id"),
        sqlite_autoincrement=True,
        **_OPTIONS,
    )
    create_index("usage_accounts_hash", "usage_accounts", ["hash"], is_unique=True)
    create_index("usage_accounts_job", "usage_accounts", ["job_uid"])
    create_index("usage_accounts_namespace", "usage_accounts", ["namespace_id"])


def _create_intervals() -> None:
    create_table(
        "pod_intervals",
        _id(),
        *_strings(191, "pod_uid"),
        *_numbers("started_at", "ended_at", "fork", "account_id", "is_later"),
        *_strings(191, "closed_by"),
        *_strings(255, "pod", "node"),
        *_numbers("gpu", "gpu_memory_mib", "cpu_milli", "memory_mib"),
        *_texts("cards"),
        sqlite_autoincrement=True,
        **_OPTIONS,
    )
    create_index("pod_intervals_account", "pod_intervals", ["account_id"])
    create_index("pod_intervals_fork", "pod_intervals", ["fork", "started_at", "ended_at"])
    create_index("pod_intervals_key", "pod_intervals", ["pod_uid", "started_at"], is_unique=True)
    create_table(
        "node_intervals",
        _id(),
        *_strings(191, "node_uid"),
        *_numbers("started_at", "ended_at"),
        *_strings(191, "closed_by"),
        *_strings(255, "node"),
        *_numbers("class_id"),
        sqlite_autoincrement=True,
        **_OPTIONS,
    )
    create_index("node_intervals_end", "node_intervals", ["ended_at"])
    create_index("node_intervals_key", "node_intervals", ["node_uid", "started_at"], is_unique=True)


def _create_hours() -> None:
    create_table(
        "pod_hours",
        *_numbers("hour", "interval_id", "busy", "idle", "unknown"),
        PrimaryKeyConstraint("hour", "interval_id"),
        **_OPTIONS,
    )
    create_table(
        "node_hours",
        *_numbers("hour", "interval_id", "held", "free", "stranded", "broken"),
        *_strings(191, "lacking"),
        *_texts("holders"),
        PrimaryKeyConstraint("hour", "interval_id"),
        **_OPTIONS,
    )


def _create_states() -> None:
    create_table(
        "kept_states",
        _id(),
        *_strings(191, "kind", "uid"),
        *_numbers("started_at", "ended_at", "fork"),
        *_strings(255, "namespace", "name"),
        *_texts("body"),
        sqlite_autoincrement=True,
        **_OPTIONS,
    )
    create_index("kept_states_fork", "kept_states", ["fork", "started_at", "ended_at"])
    create_index("kept_states_key", "kept_states", ["uid", "kind", "started_at"], is_unique=True)
    create_index("kept_states_start", "kept_states", ["started_at"])
    create_table(
        "ledger_jobs",
        Column("uid", String(191), primary_key=True, nullable=False),
        *_numbers("namespace_id", "user_id", "leaf_id"),
        *_strings(255, "name"),
        *_strings(191, "type"),
        *_strings(255, "api_version"),
        *_numbers("created_at", "started_at", "finished_at", "deleted_at"),
        *_strings(255, "status"),
        *_texts("reason"),
        *_numbers("gpu", "instances"),
        *_texts("image", "manifest"),
        **_OPTIONS,
    )
    create_index("ledger_jobs_created", "ledger_jobs", ["created_at"])


def _create_days() -> None:
    create_table(
        "usage_days",
        *_numbers(
            "day",
            "account_id",
            "gpu",
            "gpu_memory",
            "cpu",
            "memory",
            "busy",
            "idle",
            "unknown",
            "pods",
        ),
        PrimaryKeyConstraint("day", "account_id"),
        **_OPTIONS,
    )
    create_index("usage_days_account", "usage_days", ["account_id"])
    create_table(
        "node_days",
        *_numbers("day", "class_id"),
        *_strings(191, "node_ms", "used", "idle", "unknown", "free", "stranded", "broken"),
        PrimaryKeyConstraint("day", "class_id"),
        **_OPTIONS,
    )


def _create_prices() -> None:
    create_table(
        "prices",
        _id(),
        *_texts("matcher"),
        *_strings(191, "currency"),
        *_numbers("node_hour", "list_node_hour", "gpu_permille", "valid_from", "entered_at"),
        *_strings(255, "entered_by"),
        *_texts("note"),
        *_numbers("is_end"),
        sqlite_autoincrement=True,
        **_OPTIONS,
    )
