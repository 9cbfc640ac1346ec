"""`fairlead quota plan`: what the quota controller would do now, or what if. It never writes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.quota.replay import add_replay, check_replay, run_replay
from fairlead.errors import UserError
from fairlead.model.quota.tree import ViolationCode

if TYPE_CHECKING:
    from fairlead.model.quota.plan import QuotaPlan
    from fairlead.model.quota.state import QuotaState
    from fairlead.model.quota.tree import Violation

NAME = "quota plan"
HELP = """Print what the quota controller would do now: which pods it admits, which it evicts for
which, which wait and why. Nothing is written.

--tree, --add and --remove print what it would do with another tree, with additional pods or without
some pods. --until-settled simulates plan after plan until nothing is left to do: evicted pods stop,
and those that a workload owns return as waiting pods (NAME+1); admitted pods run.

--replay plays the pods of the past instead, from the usage ledger of the console or of --store:
hours of waiting, evictions and idle money of each leaf, as they were and as they would have been
with the tree of --tree, or with more or fewer nodes (--nodes). Only administrators ask the console.

    fairlead quota plan --tree new.yaml --until-settled
    fairlead quota plan --add ns=team-a,count=8,nvidia.com/gpu=1,priority=10,gang=8
    fairlead quota plan --tree new.yaml --replay 30d"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tree",
        metavar="FILE",
        default="",
        help="use the ElasticQuotaTree of this file instead of the cluster's",
    )
    add = (
        "add N pods, replicas of a Deployment: "
        "ns=NAMESPACE,count=N,RESOURCE=AMOUNT[,priority=P][,gang=SIZE]; repeatable"
    )
    parser.add_argument("--add", metavar="PODS", action="append", default=[], help=add)
    parser.add_argument(
        "--remove",
        metavar="NAMESPACE/POD",
        action="append",
        default=[],
        help="remove this pod; repeatable",
    )
    parser.add_argument(
        "--until-settled",
        action=BooleanFlag,
        help="simulate plan after plan until nothing is left to do",
    )
    add_replay(parser)
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="json or yaml")


def run(args: argparse.Namespace, context: Context) -> int:
    """0; 1 with a tree that stops every plan."""
    if args.output not in ("", "json", "yaml"):
        raise UserError(
            f"output format `{args.output}` is not known",
            "`-o json` or `-o yaml`; without `-o` it is a table",
        )
    check_replay(args)
    if args.replay:
        return run_replay(args, context)
    state = _asked_state(args, context)
    violations = [
        each
        for each in state.violations
        if each.is_error or args.tree or each.code == ViolationCode.OVER_MAX_NOW
    ]
    document, text = (
        _settled(state, violations) if args.until_settled else _planned(state, violations)
    )
    if args.output:
        from fairlead.cli.frame.documents import render_document

        context.stdout.write(render_document(args.output, document).rstrip("\n") + "\n")
    else:
        context.stdout.write(text)
    return 1 if any(each.stops for each in state.violations) else 0


def _asked_state(args: argparse.Namespace, context: Context) -> QuotaState:
    from fairlead.cli.quota.added_pods import added_pods
    from fairlead.cli.quota.cluster_state import read_state
    from fairlead.cli.quota.tree_file import read_tree
    from fairlead.rules.quota.what_if import with_pods, without_pods

    added = [added_pods(text) for text in args.add]
    for text in args.remove:
        if len(text.split("/")) != 2 or not all(text.split("/")):
            raise UserError(
                f"`--remove {text}` is not the name of a pod",
                "write it as `--remove NAMESPACE/POD`",
            )
    _, state = read_state(context, read_tree(args.tree, context.machine) if args.tree else None)
    return with_pods(without_pods(state, args.remove), added)


def _planned(state: QuotaState, violations: Sequence[Violation]) -> tuple[Any, str]:
    from fairlead.cli.quota.plan_tables import plan_text
    from fairlead.rules.quota.plan import plan_quota
    from fairlead.wire.quota.plan_json import render_plan

    plan: QuotaPlan = plan_quota(state)
    return render_plan(plan), plan_text(plan, violations)


def _settled(state: QuotaState, violations: Sequence[Violation]) -> tuple[Any, str]:
    from fairlead.cli.quota.plan_tables import settled_text
    from fairlead.rules.quota.what_if import running_by_leaf, settle
    from fairlead.wire.quota.plan_json import render_settled

    settled = settle(state)
    running = running_by_leaf(settled.state)
    document = render_settled(
        settled.plan, running, settled.plans, settled.admitted, settled.evicted
    )
    return document, settled_text(settled, running_by_leaf(state), running, violations)
