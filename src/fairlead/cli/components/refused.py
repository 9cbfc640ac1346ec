"""Findings that stop a verb before it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.installed.finding import Finding


def refuse_failing(id: str, found: Sequence[Finding]) -> None:
    """Raises UserError with all failing checks and what mends them."""
    from fairlead.rules.components.preflight import failing

    bad = failing(found)
    if bad:
        raise UserError(f"`{id}` is not changed: {_sentences(bad)}", _hint(bad))


def refuse_all(found: Mapping[str, Sequence[Finding]]) -> None:
    """As `refuse_failing`, for several components by their ids: none is changed if one fails."""
    from fairlead.rules.components.preflight import failing

    bad = {id: failing(each) for id, each in found.items()}
    if any(bad.values()):
        what = "; ".join(f"`{id}`: {_sentences(each)}" for id, each in bad.items() if each)
        every = [each for some in bad.values() for each in some]
        raise UserError(f"nothing is changed: {what}", _hint(every))


def _sentences(bad: Sequence[Finding]) -> str:
    return "; ".join(f"{each.check}: {each.sentence}" for each in bad)


def _hint(bad: Sequence[Finding]) -> str:
    return "; ".join(dict.fromkeys(each.mend for each in bad if each.mend))
