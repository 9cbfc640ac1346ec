"""The table of idle GPUs, and how the GPU money is split by node (docs/spec/usage.md#idle)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec.structs import asdict

from fairlead.console.boards.usage.figures import (
    gpu_money_of,
    hours,
    money_text,
    plain,
    split_costs,
    whole_gpu_money,
)
from fairlead.console.boards.usage.ledger_reads import Table, envelope_of, shown_period, time_text
from fairlead.console.pages.endpoints import IDLE_FILTERS
from fairlead.console.pages.envelope import Scalar, Sentence, counted, listed
from fairlead.console.pages.usage.tables import GpuMoney, IdleRow, NodeGpuMoney
from fairlead.errors import UserError
from fairlead.model.usage.ledger import GPU, HOUR, LedgerJob, UsedBy
from fairlead.ports import LedgerReading
from fairlead.rules.usage.cost import node_totals
from fairlead.rules.usage.days import time_zone
from fairlead.rules.usage.idle import IdleFacts, IdleReason, IdleUse, idle_uses, node_sums
from fairlead.rules.usage.money import apportioned
from fairlead.rules.usage.periods import Period, parse_period, plan_of
from fairlead.rules.usage.prices import PriceBook

PERIOD_MAX: Final = 31 * 24 * HOUR
_HOLDERS_SHOWN: Final = 3


async def idle_table(
    ledger: LedgerReading,
    words: Mapping[str, str],
    now: int,
    namespaces: Collection[str] | None = None,
) -> Table:
    """`words`: of a period, of whole hours. `namespaces`: pods of these alone, and no nodes; None =
    all. Raises UserError, StoreDown.
    """
    bounds = await ledger.ledger_bounds()
    zone = time_zone(bounds.zone)
    asked = parse_period(words, now, zone)
    if asked.end - asked.start > PERIOD_MAX:
        raise UserError(
            f"the period `{asked.name}` is longer than 31 days",
            "ask for a month or less, or for a month report",
        )
    period = Period(asked.name, asked.start // HOUR * HOUR, asked.end // HOUR * HOUR)
    plan = plan_of(period, bounds, zone)
    start, end = period.start, max(period.start, plan.until // HOUR * HOUR)
    sees_all = namespaces is None
    idle = await ledger.idle_hours(start, end, namespaces)
    facts = IdleFacts(
        start,
        end,
        await ledger.pod_intervals(start, end, namespaces, "", {each.pod_uid for each in idle}),
        await ledger.node_intervals(start, end) if sees_all else (),
        idle,
        await ledger.held_hours(start, end) if sees_all else (),
        await ledger.node_hours(start, end) if sees_all else (),
    )
    book = PriceBook(await ledger.prices())
    rows = idle_rows(idle_uses(facts, book))
    nodes, whole = node_rows(facts, book) if sees_all else ([], None)
    return Table(
        row_type=IdleRow,
        rows=rows,
        sentence=_sentence(rows),
        **envelope_of(bounds, now),
        more={
            "period": shown_period(period, plan, bounds),
            "currency": book.currency,
            "nodes": nodes,
            "totals": whole,
        },
        filters=[each.name for each in IDLE_FILTERS],
    )


def idle_rows(uses: Sequence[IdleUse]) -> list[IdleRow]:
    """In the order of the uses; their costs are rounded together."""
    costs = iter(apportioned([each.cost for each in uses if each.cost is not None]))
    return [_row(each, None if each.cost is None else next(costs)) for each in uses]


def _row(use: IdleUse, cost: int | None) -> IdleRow:
    pod = use.pod
    by = pod.by if pod is not None else UsedBy("")
    job = pod.job if pod is not None else LedgerJob()
    holders = _holders(use)
    return IdleRow(
        reason=str(use.reason),
        namespace=by.namespace,
        pod=pod.pod if pod is not None else "",
        node=use.node,
        model=use.model,
        user=by.user,
        leaf=by.leaf,
        job=job.name,
        job_type=job.type,
        gpus=plain(round(use.gpus / GPU, 4)),
        since=time_text(use.since),
        gpu_hours=hours(use.gpu_ms),
        cost=money_text(cost),
        holders=holders,
        advice=_advice(use, by, holders),
    )


def _holders(use: IdleUse) -> list[str]:
    found = use.hour.holders if use.hour is not None else ()
    return [f"{namespace}/{pod}" for namespace, pod in found]


def _advice(use: IdleUse, by: UsedBy, holders: Sequence[str]) -> Sentence:
    """What to do about it."""
    node = use.node
    if use.reason is IdleReason.IDLE:
        whom = by.user or by.namespace
        text = f"ask {whom} to end the pod, or to use its GPUs"
        return Sentence("idle-ask-owner", {"owner": whom}, text)
    if use.reason is IdleReason.STRANDED:
        lacking = use.hour.lacking if use.hour is not None else ""
        shown = listed(holders, _HOLDERS_SHOWN)
        text = f"move or shrink {shown or 'pods'}, which hold most of the {lacking} of {node}"
        values: dict[str, Scalar] = {"holders": shown, "lacking": lacking, "node": node}
        return Sentence("idle-move-holders", values, text)
    if use.reason is IdleReason.BROKEN:
        text = f"repair the GPUs of {node}, or drain it"
        return Sentence("idle-repair", {"node": node}, text)
    if use.reason is IdleReason.UNKNOWN:
        text = f"find out why {node} reports no GPU readings: the page Health shows its exporter"
        return Sentence("idle-look-at-readings", {"node": node}, text)
    return Sentence("idle-use-or-remove", {"node": node}, f"give {node} work, or remove it")


def _sentence(rows: Sequence[IdleRow]) -> Sentence:
    gpus = sum(row.gpus for row in rows if row.reason == IdleReason.IDLE)
    pods = sum(row.reason == IdleReason.IDLE for row in rows)
    values: dict[str, Scalar] = {"gpus": plain(round(gpus, 4)), "pods": pods}
    if not pods:
        return Sentence("idle-none", values, "no pod holds GPUs that have been idle for an hour")
    holds = f"{counted(pods, 'pod')} {'holds' if pods == 1 else 'hold'} {counted(gpus, 'GPU')}"
    text = f"{holds} that have been idle for an hour"
    return Sentence("idle-gpus", values, text)


def node_rows(facts: IdleFacts, book: PriceBook) -> tuple[list[NodeGpuMoney], GpuMoney]:
    """The split of each node's GPU money, by name, and the sum."""
    found = node_totals(node_sums(facts), book)
    names = sorted(found)
    totals = [found[name] for name in names]
    costs = split_costs(totals)
    models = {each.node: each.price_class.model for each in facts.nodes}
    newest = {each.node_uid: each for each in facts.node_hours if each.stranded}
    uids = {each.node: each.node_uid for each in facts.nodes}
    rows = []
    for name, total, cost in zip(names, totals, costs, strict=True):
        hour = newest.get(uids[name])
        rows.append(
            NodeGpuMoney(
                **asdict(gpu_money_of(total.split, cost)),
                node=name,
                model=models[name],
                lacking=hour.lacking if hour is not None else "",
                holders=[] if hour is None else [f"{a}/{b}" for a, b in hour.holders],
            )
        )
    return rows, whole_gpu_money(totals, costs)
