"""Findings that stop a verb before it writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.installed.finding import Finding


def refuse_failing(id: str, found: Sequence[Finding]) -> None:
    """Raises UserError with all failing checks and what mends them."""
    from fairlead.rules.components.preflight import failing

    bad = failing(found)
    if bad:
        what = "; ".join(f"{each.check}: {each.sentence}" for each in bad)
        hint = "; ".join(dict.fromkeys(each.mend for each in bad if each.mend))
        raise UserError(f"`{id}` is not changed: {what}", hint)
