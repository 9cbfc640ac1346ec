"""To which object of the cluster the token of a sign-in is bound."""

from __future__ import annotations

from sqlalchemy import Column, Text
from sqlalchemy.dialects.mysql import LONGTEXT

from fairlead.edge.store.migrations.steps import add_column

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    # null in rows of before; MySQL has no default for a text
    text = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
    add_column("sign_ins", Column("bound_to", text, nullable=True))
