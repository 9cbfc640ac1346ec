"""The tables of the usage ledger (docs/spec/usage.md). `edge/store/ledger` reads and writes them.

An interval refers to an account, which is owner, job and price class together: sums group by one
number, and names are stored once. `fork` makes "which records are valid at a time" one question to
an index (`ledger/forks`).
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, Column, Index, PrimaryKeyConstraint, Table

from fairlead.edge.store.columns import (
    MYSQL_OPTIONS,
    hash_text,
    key,
    long_text,
    metadata,
    name_text,
    number,
    row_id,
)

CLAIM_ID: Final = 1
"""Of the one row of `ledger_claim`."""
_OPTIONS: Final[dict[str, Any]] = {"sqlite_autoincrement": True, **MYSQL_OPTIONS}
"""Ids are not used again: other processes may remember them."""

ledger_claim = Table(
    "ledger_claim",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    number("epoch"),
    name_text("holder"),
    number("claimed_at"),
    number("first_at"),
    number("heartbeat"),
    number("folded_until"),
    key("zone"),
    **MYSQL_OPTIONS,
)

ledger_gaps = Table(
    "ledger_gaps",
    metadata,
    Column("started_at", BigInteger, primary_key=True, autoincrement=False),
    number("ended_at"),
    **MYSQL_OPTIONS,
)

price_classes = Table(
    "price_classes",
    metadata,
    row_id(),
    hash_text("hash"),
    long_text("labels"),
    name_text("model"),
    number("gpu"),
    number("cpu_milli"),
    number("memory_mib"),
    Index("price_classes_hash", "hash", unique=True),
    **_OPTIONS,
)

usage_accounts = Table(
    "usage_accounts",
    metadata,
    row_id(),
    hash_text("hash"),
    number("namespace_id"),
    number("user_id"),
    number("leaf_id"),
    key("job_uid"),
    name_text("job"),
    key("job_type"),
    number("class_id"),
    Index("usage_accounts_hash", "hash", unique=True),
    Index("usage_accounts_namespace", "namespace_id"),
    Index("usage_accounts_job", "job_uid"),
    **_OPTIONS,
)

pod_intervals = Table(
    "pod_intervals",
    metadata,
    row_id(),
    key("pod_uid"),
    number("started_at"),
    number("ended_at"),
    number("fork"),
    number("account_id"),
    number("is_later"),
    key("closed_by"),
    name_text("pod"),
    name_text("node"),
    number("gpu"),
    number("gpu_memory_mib"),
    number("cpu_milli"),
    number("memory_mib"),
    long_text("cards"),
    Index("pod_intervals_key", "pod_uid", "started_at", unique=True),
    Index("pod_intervals_fork", "fork", "started_at", "ended_at"),
    Index("pod_intervals_account", "account_id"),
    **_OPTIONS,
)
"""`is_later`: 1 if the pod has, or had, an interval before it."""

node_intervals = Table(
    "node_intervals",
    metadata,
    row_id(),
    key("node_uid"),
    number("started_at"),
    number("ended_at"),
    key("closed_by"),
    name_text("node"),
    number("class_id"),
    Index("node_intervals_key", "node_uid", "started_at", unique=True),
    Index("node_intervals_end", "ended_at"),
    **_OPTIONS,
)

pod_hours = Table(
    "pod_hours",
    metadata,
    number("hour"),
    number("interval_id"),
    number("busy"),
    number("idle"),
    number("unknown"),
    PrimaryKeyConstraint("hour", "interval_id"),
    **MYSQL_OPTIONS,
)

node_hours = Table(
    "node_hours",
    metadata,
    number("hour"),
    number("interval_id"),
    number("held"),
    number("free"),
    number("stranded"),
    number("broken"),
    key("lacking"),
    long_text("holders"),
    PrimaryKeyConstraint("hour", "interval_id"),
    **MYSQL_OPTIONS,
)

kept_states = Table(
    "kept_states",
    metadata,
    row_id(),
    key("kind"),
    key("uid"),
    number("started_at"),
    number("ended_at"),
    number("fork"),
    name_text("namespace"),
    name_text("name"),
    long_text("body"),
    Index("kept_states_key", "uid", "kind", "started_at", unique=True),
    Index("kept_states_fork", "fork", "started_at", "ended_at"),
    Index("kept_states_start", "started_at"),
    **_OPTIONS,
)

ledger_jobs = Table(
    "ledger_jobs",
    metadata,
    key("uid", primary_key=True),
    number("namespace_id"),
    number("user_id"),
    number("leaf_id"),
    name_text("name"),
    key("type"),
    name_text("api_version"),
    number("created_at"),
    number("started_at"),
    number("finished_at"),
    number("deleted_at"),
    name_text("status"),
    long_text("reason"),
    number("gpu"),
    number("instances"),
    long_text("image"),
    long_text("manifest"),
    Index("ledger_jobs_created", "created_at"),
    **MYSQL_OPTIONS,
)

usage_days = Table(
    "usage_days",
    metadata,
    number("day"),
    number("account_id"),
    number("gpu"),
    number("gpu_memory"),
    number("cpu"),
    number("memory"),
    number("busy"),
    number("idle"),
    number("unknown"),
    number("pods"),
    PrimaryKeyConstraint("day", "account_id"),
    Index("usage_days_account", "account_id"),
    **MYSQL_OPTIONS,
)

node_days = Table(
    "node_days",
    metadata,
    number("day"),
    number("class_id"),
    key("node_ms"),
    key("used"),
    key("idle"),
    key("unknown"),
    key("free"),
    key("stranded"),
    key("broken"),
    PrimaryKeyConstraint("day", "class_id"),
    **MYSQL_OPTIONS,
)
"""Integrals in digits: those of 107,000 GPUs in one day exceed 63 bits."""

prices = Table(
    "prices",
    metadata,
    row_id(),
    long_text("matcher"),
    key("currency"),
    number("node_hour"),
    number("list_node_hour"),
    number("gpu_permille"),
    number("valid_from"),
    number("entered_at"),
    name_text("entered_by"),
    long_text("note"),
    number("is_end"),
    **_OPTIONS,
)
"""`list_node_hour`, `gpu_permille`: -1 for none."""
