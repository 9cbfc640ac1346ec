"""`fairlead quota why NS/POD` and `NS/JOB`: why it waits for quota, or what it has of it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context
from fairlead.errors import UserError
from fairlead.model.resources import amount_text
from fairlead.wire.text.tabwriter import render_rows

if TYPE_CHECKING:
    from fairlead.model.quota.plan import QuotaNodeUse, QuotaWaiting
    from fairlead.model.quota.tree import QuotaNode
    from fairlead.rules.quota.why import QuotaAnswer

NAME = "quota why"
HELP = """Say in one sentence why a pod or a job waits for quota: the sentence that its condition, its Events and the console have.
Then who is in the way, who borrows, and which pods may not be evicted for it. Of a pod that is admitted, say what its
leaf uses and borrows."""
_ROWS: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAMESPACE/NAME", help="a pod or a job (Deployment, Job, MPIJob, …); without a namespace, of -n")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.cli.quota.cluster_state import read_state
    from fairlead.rules.quota.plan import plan_quota
    from fairlead.rules.quota.why import why_quota

    namespace, _, name = args.name.rpartition("/")
    if not name or "/" in namespace:
        raise UserError(f"`{args.name}` names no pod and no job", "write NAMESPACE/POD or NAMESPACE/JOB")
    snapshot, state = read_state(context)
    answers = why_quota(snapshot, state, plan_quota(state), namespace or context.world.namespace(), name)
    context.stdout.write("\n".join(_text(answer) for answer in answers))
    return 0


def _text(answer: QuotaAnswer) -> str:
    rows = [(f"{answer.kind[:1].upper()}{answer.kind[1:]}:", answer.key), ("Reason:", answer.reason)]
    if answer.leaf:
        rows.append(("Leaf:", answer.leaf))
    if answer.pods > 1:
        rows.append(("Pods:", f"{answer.admitted} of {answer.pods} admitted"))
    if len(answer.waiting) == 1:
        rows.append(("Place:", f"{answer.waiting[0].position} of those that wait in {answer.leaf}"))
    parts = [render_rows([(answer.sentence,)]), render_rows(rows)]
    if len(answer.waiting) > 1:
        parts.append(_places(answer.waiting))
    if answer.waiting:
        parts += _obstacles(answer.waiting)
    elif answer.node is not None and answer.use is not None:
        parts.append(_leaf_table(answer.node, answer.use))
    return "\n".join(part for part in parts if part)


def _places(waiting: Sequence[QuotaWaiting]) -> str:
    rows = [("WAITS", "PLACE", "REASON"), *((each.unit, str(each.position), str(each.reason)) for each in waiting[:_ROWS])]
    return render_rows(rows) + _more(len(waiting))


def _obstacles(waiting: Sequence[QuotaWaiting]) -> list[str]:
    """Of the first that waits: where it is blocked, who borrows, who is spared."""
    first = waiting[0]
    blocked: list[Sequence[str]] = [("BLOCKED AT", "RESOURCE", "ASKS", "USED", "CLAIMED", "MAX")]
    for each in first.blocked:
        amounts = (each.asks, each.used, each.claimed, each.max)
        blocked.append((each.node, each.resource, *(amount_text(each.resource, amount) for amount in amounts)))
    borrowers = [("BORROWER", "RESOURCE", "OVER MIN")]
    borrowers += [(each.leaf, each.resource, amount_text(each.resource, each.over)) for each in first.borrowers[:_ROWS]]
    spared = [("SPARED", "WHY"), *((each.pod, each.why) for each in first.spared[:_ROWS])]
    tables = ((blocked, len(first.blocked)), (borrowers, len(first.borrowers)), (spared, len(first.spared)))
    return [render_rows(rows) + _more(number) for rows, number in tables if number]


def _leaf_table(node: QuotaNode, use: QuotaNodeUse) -> str:
    rows: list[Sequence[str]] = [("RESOURCE", "USED", "MIN", "BORROWED", "MAX")]
    for resource in sorted({*use.used, *node.min, *node.max}):
        used, most = use.used.get(resource, 0), node.max.get(resource)
        least = use.counted_min.get(resource, node.min.get(resource, 0))
        told = [amount_text(resource, amount) for amount in (used, least, max(0, used - least))]
        rows.append((resource, *told, "N/A" if most is None else amount_text(resource, most)))
    return render_rows(rows)


def _more(number: int) -> str:
    return f"and {number - _ROWS} more\n" if number > _ROWS else ""
