"""`fairlead quota why NS/POD` and `NS/JOB`: why it waits for quota, or what it has of it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.text import short_duration
from fairlead.errors import UserError
from fairlead.model.resources import amount_text
from fairlead.wire.kube.time import render_time
from fairlead.wire.text.tabwriter import render_rows

if TYPE_CHECKING:
    from fairlead.model.moment import Moment
    from fairlead.model.quota.plan import MissingAmount
    from fairlead.model.snapshot import ClusterSnapshot
    from fairlead.rules.quota.why import QueuedUnit, QuotaAnswer

NAME = "quota why"
HELP = """Print why a pod or a job waits for quota, in the sentence that its condition, its Events
and the console contain. Then print since when it waits, its priority and place, what it lacks, how
often it was evicted, what blocks it, which leaves borrow, and which pods cannot be evicted for it.
For an admitted pod, print what its leaf uses and borrows.

The place is the position in the order in which units (pods, gangs, suspended jobs) are tried now:
first claimants, then units that the leaf's min covers, then by priority, by how little the leaf
borrows, and by age. It is not a promise: a unit that does not fit is skipped, and the order is
computed again whenever something changes.

Without the right to list the pods of all namespaces it prints what the quota controller has
written: the condition of the pod and the status of the tree. The place is unknown then."""
_ROWS: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        metavar="NAMESPACE/NAME",
        help="a pod or a job (Deployment, Job, MPIJob, …); without a namespace, in that of -n",
    )
    parser.add_argument(
        "--output", "-o", metavar="FORMAT", default="", help="table (default), json or yaml"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    namespace, _, name = args.name.rpartition("/")
    if not name or "/" in namespace:
        raise UserError(
            f"`{args.name}` is not the name of a pod or a job",
            "write NAMESPACE/POD or NAMESPACE/JOB",
        )
    if args.output not in ("", "table", "json", "yaml"):
        raise UserError(
            f"output format `{args.output}` is not known",
            "`-o table` (the default), `-o json` or `-o yaml`",
        )
    answers, now = _answers(context, namespace or context.world.namespace(), name)
    if args.output in ("json", "yaml"):
        from fairlead.cli.frame.documents import render_document
        from fairlead.cli.quota.why_document import answer_document

        document = {"items": [answer_document(answer) for answer in answers]}
        context.stdout.write(render_document(args.output, document).rstrip("\n") + "\n")
    else:
        context.stdout.write("\n".join(_text(answer, now) for answer in answers))
    return 0


def _answers(context: Context, namespace: str, name: str) -> tuple[list[QuotaAnswer], Moment]:
    """With the time of their cluster."""
    from fairlead.cli.quota.cluster_state import hides_pods, read_cluster, state_of
    from fairlead.rules.quota.plan import plan_quota
    from fairlead.rules.quota.why import why_quota

    whole = read_cluster(context)
    if hides_pods(whole):
        return _reported(context, whole, namespace, name)
    snapshot, state = state_of(whole, context)
    return why_quota(snapshot, state, plan_quota(state), namespace, name), state.now


def _reported(
    context: Context, whole: ClusterSnapshot, namespace: str, name: str
) -> tuple[list[QuotaAnswer], Moment]:
    """For a user who may not read the pods of all namespaces, which `whole` lacks."""
    from msgspec.structs import replace

    from fairlead.cli.quota.cluster_state import note_reported, tree_of, warn_of_unread
    from fairlead.rules.quota.sight import quota_state
    from fairlead.rules.quota.why import why_reported
    from fairlead.wire.quota.tree_status import parse_node_uses

    tree = tree_of(whole)
    part = context.world.reader().read_namespace(namespace)
    warn_of_unread(part, context)
    snapshot = replace(part, quota_tree=tree, quota=tree.root)
    uses = parse_node_uses(tree.status)
    state = quota_state(snapshot, snapshot.taken_at or context.now())
    answers = why_reported(snapshot, state, uses, namespace, name)
    note_reported(tree, uses, context)
    return answers, state.now


def _text(answer: QuotaAnswer, now: Moment) -> str:
    parts = [render_rows([(answer.sentence,)]), render_rows(_facts(answer, now))]
    if len(answer.units) > 1:
        parts.append(_places(answer.units))
    if answer.units:
        first = answer.units[0]
        parts += [_units_before(first), *_obstacles(first)]
    elif answer.use is not None:
        parts.append(_leaf_table(answer))
    return "\n".join(part for part in parts if part)


def _facts(answer: QuotaAnswer, now: Moment) -> list[tuple[str, str]]:
    rows = [
        (f"{answer.kind[:1].upper()}{answer.kind[1:]}:", answer.key),
        ("Reason:", f"{answer.reason}{_since(answer.reason_since, now)}"),
    ]
    if answer.leaf:
        rows.append(("Leaf:", answer.leaf))
    if answer.pods > 1:
        rows.append(("Pods:", f"{answer.admitted} of {answer.pods} admitted"))
    waits_reported = answer.is_reported and answer.since is not None
    if answer.pods or answer.units or waits_reported:
        rows.append(("Priority:", str(answer.priority)))
    if answer.units or waits_reported:
        waits = (
            "unknown"
            if answer.since is None
            else f"{render_time(answer.since)} ({short_duration(now - answer.since)})"
        )
        rows.append(("Waits since:", waits))
    if len(answer.units) == 1:
        rows.append(("Place:", _place(answer.units[0])))
    if waits_reported:
        rows.append(("Place:", "unknown: needs the pods of all namespaces"))
    if answer.units and (lacks := answer.units[0].lacks):
        rows.append(("Must be free:", ", ".join(_lacking(each) for each in lacks)))
    if answer.pods or answer.units or waits_reported:
        rows.append(("Evicted:", _evicted(answer, now)))
    return rows


def _since(at: Moment | None, now: Moment) -> str:
    return "" if at is None else f", for {short_duration(now - at)}"


def _place(unit: QueuedUnit) -> str:
    leaf, overall = unit.in_leaf, unit.overall
    return (
        f"in leaf {unit.row.leaf}: {leaf.number} of {leaf.count}; over all leaves: "
        f"{overall.number} of {overall.count}"
    )


def _lacking(lacking: MissingAmount) -> str:
    """How much of what, and where.

    >>> from fairlead.model.quota.plan import MissingAmount
    >>> _lacking(MissingAmount("max", "root.a", "cpu", 5000))
    '5 cpu more below root.a'
    >>> _lacking(MissingAmount("node", "gpu-1", "cpu", 500))
    '500m cpu more on node gpu-1'
    """
    where = {
        "max": f"below {lacking.at}",
        "min": f"within the min of {lacking.at}",
        "cap": f"within what {lacking.at} may use",
        "node": f"on node {lacking.at}",
        "nodes": "on the cluster's nodes",
    }
    return (
        f"{amount_text(lacking.resource, lacking.amount)} {lacking.resource} more "
        f"{where[lacking.kind]}"
    )


def _evicted(answer: QuotaAnswer, now: Moment) -> str:
    evicted = answer.evicted
    if evicted is None:
        return "unknown: Events could not be read"
    if not evicted.count:
        return "never, as far as Events are kept"
    times = "once" if evicted.count == 1 else f"{evicted.count} times"
    last = "" if evicted.at is None else f", last {short_duration(now - evicted.at)} ago"
    return f"{times}{last} (its owner's pods together, as far as Events are kept)"


def _places(units: Sequence[QueuedUnit]) -> str:
    rows = [("WAITS", "PLACE IN LEAF", "OVER ALL", "PRIORITY", "REASON")]
    for unit in units[:_ROWS]:
        row = unit.row
        rows.append(
            (row.unit, str(row.position), str(row.overall), str(row.priority), str(row.reason))
        )
    return render_rows(rows) + _more(len(units))


def _units_before(first: QueuedUnit) -> str:
    """Who is tried before it: in its leaf by name, in other leaves by number."""
    rows = [("BEFORE IT", "LEAF", "PRIORITY", "REASON")]
    rows += [
        (each.unit, each.leaf, str(each.priority), str(each.reason)) for each in first.ahead[:_ROWS]
    ]
    hidden = first.in_leaf.number - 1 - len(rows[1:])
    rows += [(f"{hidden} more", first.row.leaf, "-", "-")] if hidden > 0 else []
    rows += [
        (f"{count} of another leaf", leaf, "-", "-")
        for leaf, count in sorted(first.ahead_elsewhere.items())
    ]
    return render_rows(rows) if len(rows) > 1 else ""


def _obstacles(first: QueuedUnit) -> list[str]:
    """Of the first that waits: where it is blocked, who borrows, who is spared."""
    row = first.row
    blocked: list[Sequence[str]] = [("BLOCKED AT", "RESOURCE", "ASKS", "USED", "CLAIMED", "MAX")]
    for each in row.blocked:
        amounts = (each.asks, each.used, each.claimed, each.max)
        blocked.append(
            (each.node, each.resource, *(amount_text(each.resource, amount) for amount in amounts))
        )
    borrowers = [("BORROWER", "RESOURCE", "OVER MIN")]
    borrowers += [
        (each.leaf, each.resource, amount_text(each.resource, each.over))
        for each in row.borrowers[:_ROWS]
    ]
    spared = [("SPARED", "WHY"), *((each.pod, each.why) for each in row.spared[:_ROWS])]
    tables = (
        (blocked, len(row.blocked)),
        (borrowers, len(row.borrowers)),
        (spared, len(row.spared)),
    )
    return [render_rows(rows) + _more(number) for rows, number in tables if number]


def _leaf_table(answer: QuotaAnswer) -> str:
    node, use = answer.node, answer.use
    assert node is not None
    assert use is not None
    rows: list[Sequence[str]] = [("RESOURCE", "USED", "MIN", "BORROWED", "MAX")]
    for resource in answer.resources:
        used, most = use.used.get(resource, 0), node.max.get(resource)
        least = use.counted_min.get(resource, node.min.get(resource, 0))
        amounts = [amount_text(resource, amount) for amount in (used, least, max(0, used - least))]
        rows.append((resource, *amounts, "N/A" if most is None else amount_text(resource, most)))
    return render_rows(rows)


def _more(number: int) -> str:
    return f"and {number - _ROWS} more\n" if number > _ROWS else ""
