"""The time in which a command alone writes the objects of an installation
(docs/spec/operations.md#lease).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fairlead.errors import UserError
from fairlead.ports import WorkLease


@contextmanager
def alone(
    lease: WorkLease | None, is_as_planned: Callable[[], bool]
) -> Iterator[Callable[[], None]]:
    """`lease`: None = no other program writes. The value of the block is to be called before each
    write: it raises UserError if the Lease was lost. Raises UserError, too, if the installation is
    not as planned when the Lease is held.
    """
    if lease is None:
        yield always_held
        return
    with lease.hold() as check:
        if not is_as_planned():
            what = "another program changed the installation after this command had looked"
            raise UserError(what, "run the same command again")
        yield check


def always_held() -> None:
    """Without a Lease."""
