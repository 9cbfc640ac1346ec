"""Alembic's entry: it runs this file, under the name `env_py`, with the connection to migrate."""

from __future__ import annotations

from alembic import context

from fairlead.edge.store.tables import VERSION_TABLE


def migrate() -> None:
    context.configure(
        connection=context.config.attributes["connection"],
        version_table=VERSION_TABLE,
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


if __name__ == "env_py":
    migrate()
