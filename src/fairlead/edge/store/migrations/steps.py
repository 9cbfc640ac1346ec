"""Steps of migrations that do nothing where they are done already.

MySQL commits each statement that changes the schema. A process that ends between two of them leaves
a store between two versions; the next start runs the whole migration again.
"""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import Column, inspect
from sqlalchemy.schema import SchemaItem


def create_table(name: str, *columns: SchemaItem, **options: Any) -> None:
    if not inspect(op.get_bind()).has_table(name):
        op.create_table(name, *columns, **options)


def create_index(name: str, table: str, columns: list[str], *, is_unique: bool = False) -> None:
    existing = {each["name"] for each in inspect(op.get_bind()).get_indexes(table)}
    if name not in existing:
        op.create_index(name, table, columns, unique=is_unique)


def add_column(table: str, column: Column[Any]) -> None:
    existing = {each["name"] for each in inspect(op.get_bind()).get_columns(table)}
    if column.name not in existing:
        op.add_column(table, column)
