"""What the usage recorder asks its process to do (docs/spec/usage.md#recorder)."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from fairlead.model.usage.ledger import LedgerBatch


class ClaimLedger(Struct, frozen=True):
    """Make this recorder the newest one, and give it what is open. `at`: milliseconds."""

    at: int


class WriteLedger(Struct, frozen=True):
    """Store all of the batch, or nothing."""

    batch: LedgerBatch


class FoldDay(Struct, frozen=True):
    """Replace the rows of a billing day by the sums of its intervals."""

    day: int
    end: int


class ForgetLedger(Struct, frozen=True):
    """Remove records that ended before the first time, and days and jobs before the second."""

    records_before: int
    days_before: int


UsageAction: TypeAlias = ClaimLedger | WriteLedger | FoldDay | ForgetLedger
