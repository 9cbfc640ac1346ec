"""A price is entered, or the prices of a matcher end; none is ever changed.

It is written to the store, not to the cluster. Specification: docs/spec/usage.md#prices.
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request

from fairlead.console.boards.usage.price_rows import planned_price, price_name
from fairlead.console.http.subjects import subject_of
from fairlead.console.http.writing.frame import PlannedWrite, Written
from fairlead.console.pages.usage.prices import PriceOrder
from fairlead.model.records.audit import AuditTarget
from fairlead.ports import LedgerReading
from fairlead.rules.usage.money import render_money

KIND: Final = "Price"


async def plan_price(
    ledger: LedgerReading, request: Request, order: PriceOrder, now: int
) -> PlannedWrite:
    """`now`: milliseconds UTC. Raises StoreDown."""
    subject = subject_of(request)
    plan = await planned_price(ledger, order, now, subject.user or subject.name)

    async def act() -> Written:
        return Written(plan.written(await ledger.add_price(plan.price)), 201)

    price = plan.price
    what = "end" if price.ended else f"{render_money(price.node_hour)} {price.currency} per hour"
    return PlannedWrite(
        target=AuditTarget(KIND, "", price_name(price)[:253]),
        act=act,
        summary=f"{what} from {plan.row.valid_from}"[:500],
        faults=plan.faults,
        preview=plan.preview,
    )
